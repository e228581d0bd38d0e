//! Turns results into tables, plots and one self-contained HTML page.
