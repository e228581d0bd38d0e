//! The network while it is read: the scenario, and what is needed to find its parts again.

use std::collections::HashMap;

use crate::scenario::{Autorate, Capture, Cell, Flow, Link, NodeId, Observation, Scenario};

/// A scenario that is being read.
pub(super) struct Network {
    pub(super) scenario: Scenario,
    /// The node of each name. Only looked up, so that its order does not matter.
    nodes: HashMap<String, NodeId>,
    /// The section of each link. A section with `each` has several links.
    link_sections: Vec<usize>,
    /// The section of each cell.
    cell_sections: Vec<usize>,
    /// The section of each flow. An application and a section with `each` have several flows.
    flow_sections: Vec<usize>,
    /// The section of each observation.
    observe_sections: Vec<usize>,
    /// The section of each capture.
    capture_sections: Vec<usize>,
    /// The section of each autorate.
    autorate_sections: Vec<usize>,
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

    /// Returns the index of the section of a link. `None` if the link is not from a section.
    pub(super) fn link_section(&self, link: usize) -> Option<usize> {
        self.link_sections.get(link).copied()
    }

    /// Adds a cell of the section with this index.
    pub(super) fn add_cell(&mut self, cell: Cell, section: usize) {
        self.scenario.cells.push(cell);
        self.cell_sections.push(section);
    }

    /// Returns the index of the section of a cell.
    pub(super) fn cell_section(&self, cell: usize) -> usize {
        self.cell_sections[cell]
    }

    /// Adds a flow of the section with this index.
    pub(super) fn add_flow(&mut self, flow: Flow, section: usize) {
        self.scenario.flows.push(flow);
        self.flow_sections.push(section);
    }

    /// Returns the index of the section of a flow.
    pub(super) fn flow_section(&self, flow: usize) -> usize {
        self.flow_sections[flow]
    }

    /// Adds an observation of the section with this index.
    pub(super) fn add_observation(&mut self, observation: Observation, section: usize) {
        self.scenario.observations.push(observation);
        self.observe_sections.push(section);
    }

    /// Returns the index of the section of an observation.
    pub(super) fn observe_section(&self, observation: usize) -> usize {
        self.observe_sections[observation]
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

    /// Returns the index of the section of an autorate.
    pub(super) fn autorate_section(&self, autorate: usize) -> usize {
        self.autorate_sections[autorate]
    }

    /// Returns the index of the section of a capture.
    pub(super) fn capture_section(&self, capture: usize) -> usize {
        self.capture_sections[capture]
    }
}
