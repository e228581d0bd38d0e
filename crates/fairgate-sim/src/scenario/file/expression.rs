//! Whole numbers that are calculated from the variables of `each`: `{i}`, `{i+1}`, `{(7*i-6)%140}`.
//!
//! `*`, `/` and `%` bind more than `+` and `-`. Division rounds down. A result must not be negative.

/// Calculates an expression. `value` returns the number of a variable, or what is wrong with it.
pub(super) fn calculate(text: &str, value: &dyn Fn(&str) -> Result<i64, String>) -> Result<i64, String> {
    let mut expression = Expression {
        text,
        at: 0,
        depth: 0,
        value,
    };
    let result = expression.sum()?;
    match expression.next() {
        None if result >= 0 => Ok(result),
        None => Err(format!("`{{{text}}}` is {result}, but must be at least 0")),
        Some(sign) => Err(format!("`{{{text}}}`: `{sign}` is not expected here")),
    }
}

/// The maximum depth of parentheses.
const DEEPEST: u32 = 32;

struct Expression<'a> {
    text: &'a str,
    /// The offset of what is not read yet.
    at: usize,
    depth: u32,
    value: &'a dyn Fn(&str) -> Result<i64, String>,
}

impl Expression<'_> {
    /// Skips white space and returns the next character.
    fn next(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    /// Takes the next character if it is one of these.
    fn take(&mut self, signs: &[char]) -> Option<char> {
        let sign = self.next().filter(|sign| signs.contains(sign))?;
        self.at += sign.len_utf8();
        Some(sign)
    }

    fn sum(&mut self) -> Result<i64, String> {
        let mut left = self.product()?;
        while let Some(sign) = self.take(&['+', '-']) {
            let right = self.product()?;
            left = self.checked(match sign {
                '+' => left.checked_add(right),
                _ => left.checked_sub(right),
            })?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<i64, String> {
        let mut left = self.factor()?;
        while let Some(sign) = self.take(&['*', '/', '%']) {
            let right = self.factor()?;
            if right == 0 && sign != '*' {
                return Err(format!("`{{{}}}` divides by 0", self.text));
            }
            left = self.checked(match sign {
                '*' => left.checked_mul(right),
                '/' => left.checked_div_euclid(right),
                _ => left.checked_rem_euclid(right),
            })?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<i64, String> {
        if self.take(&['(']).is_some() {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(format!("`{{{}}}` has more than {DEEPEST} parentheses", self.text));
            }
            let inner = self.sum()?;
            self.depth -= 1;
            return match self.take(&[')']) {
                Some(_) => Ok(inner),
                None => Err(format!("a parenthesis of `{{{}}}` is not closed", self.text)),
            };
        }
        let is_word = |sign: char| sign.is_alphanumeric() || sign == '_';
        self.next();
        let rest = &self.text[self.at..];
        let word = &rest[..rest.find(|sign| !is_word(sign)).unwrap_or(rest.len())];
        self.at += word.len();
        match word {
            "" => Err(format!(
                "`{{{}}}` needs a number or a variable after `{}`",
                self.text,
                self.text[..self.at].trim_end()
            )),
            number if number.starts_with(|sign: char| sign.is_ascii_digit()) => number
                .parse()
                .map_err(|_| format!("`{number}` is neither a number nor a variable")),
            name => (self.value)(name),
        }
    }

    fn checked(&self, result: Option<i64>) -> Result<i64, String> {
        result.ok_or_else(|| format!("`{{{}}}` is too large a number", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::calculate;

    fn of(text: &str) -> Result<i64, String> {
        calculate(text, &|name| match name {
            "i" => Ok(7),
            "side" => Err("`side` is not a number".to_owned()),
            other => Err(format!("no `{other}`")),
        })
    }

    #[test]
    fn expressions_follow_the_usual_rules() {
        for (text, result) in [
            ("i", 7),
            ("i+1", 8),
            ("i - 1", 6),
            ("2*i+3", 17),
            ("2+i*3", 23),
            ("(2+i)*3", 27),
            ("20-i-3", 10),
            ("i/2", 3),
            ("(i*5)%4", 3),
            (" ( ( i ) ) ", 7),
        ] {
            assert_eq!(of(text), Ok(result), "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, what) in [
            ("i-8", "is -1"),
            ("", "needs a number or a variable"),
            ("i+", "after `i+`"),
            ("i 2", "`2` is not expected"),
            ("(i", "not closed"),
            ("i)", "`)` is not expected"),
            ("i/0", "divides by 0"),
            ("j", "no `j`"),
            ("side+1", "not a number"),
            ("2x", "neither a number nor a variable"),
            ("9223372036854775807*2", "too large"),
            (&"(".repeat(100), "parentheses"),
            ("é", "no `é`"),
        ] {
            let error = of(text).expect_err(text);
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
