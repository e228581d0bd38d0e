//! The network while it is read: the scenario, and what is needed to find its parts again.

use std::collections::HashMap;

use crate::scenario::{Autorate, Capture, Cell, Flow, Link, NodeId, Observation, Scenario};

/// A scenario that is being read.
pub(super) struct Network {
    pub(super) scenario: Scenario,
    /// The node of each name. Only looked up, so that its order does not matter.
    nodes: HashMap<String, NodeId>,
    /// The section of each link. A section with `each` has several links.
    pub(super) link_sections: Vec<usize>,
    /// The section of each cell.
    pub(super) cell_sections: Vec<usize>,
    /// The section of each flow. An application and a section with `each` have several flows.
    pub(super) flow_sections: Vec<usize>,
    /// The section of each observation.
    pub(super) observe_sections: Vec<usize>,
    /// The section of each capture.
    pub(super) capture_sections: Vec<usize>,
    /// The section of each autorate.
    pub(super) autorate_sections: Vec<usize>,
}

impl Network {
    pub(super) fn new(scenario: Scenario) -> Network {
        Network {
            scenario,
            nodes: HashMap::new(),
            link_sections: Vec::new(),
            cell_sections: Vec::new(),
            flow_sections: Vec::new(),
            observe_sections: Vec::new(),
            capture_sections: Vec::new(),
            autorate_sections: Vec::new(),
        }
    }

    /// Adds a node. Returns `None` if its name is taken.
    pub(super) fn add(&mut self, name: &str) -> Option<NodeId> {
        if self.nodes.contains_key(name) {
            return None;
        }
        let node = self.scenario.node(name);
        self.nodes.insert(name.to_owned(), node);
        Some(node)
    }

    pub(super) fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.get(name).copied()
    }

    pub(super) fn find_or_add(&mut self, name: &str) -> NodeId {
        match self.find(name) {
            Some(node) => node,
            None => self.add(name).expect("the name was not found"),
        }
    }

    /// Adds a link of the section with this index.
    pub(super) fn add_link(&mut self, link: Link, section: usize) {
        self.scenario.links.push(link);
        self.link_sections.push(section);
    }

    /// Adds a cell of the section with this index.
    pub(super) fn add_cell(&mut self, cell: Cell, section: usize) {
        self.scenario.cells.push(cell);
        self.cell_sections.push(section);
    }

    /// Adds a flow of the section with this index.
    pub(super) fn add_flow(&mut self, flow: Flow, section: usize) {
        self.scenario.flows.push(flow);
        self.flow_sections.push(section);
    }

    /// Adds an observation of the section with this index.
    pub(super) fn add_observation(&mut self, observation: Observation, section: usize) {
        self.scenario.observations.push(observation);
        self.observe_sections.push(section);
    }

    /// Adds a capture of the section with this index.
    pub(super) fn add_capture(&mut self, capture: Capture, section: usize) {
        self.scenario.captures.push(capture);
        self.capture_sections.push(section);
    }

    /// Adds an autorate of the section with this index.
    pub(super) fn add_autorate(&mut self, autorate: Autorate, section: usize) {
        self.scenario.autorates.push(autorate);
        self.autorate_sections.push(section);
    }
}
