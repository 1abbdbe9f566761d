// Package hosts carries out what is done to whole hosts: maintenance, draining, removal and replacement. It knows no storage
// system: the plans of the clusters that a host matters to say what can be had and what is still under way (see engine.Driver),
// and their normal orchestration does the work. An action only asks first, sets the mode of the host, and watches.
package hosts
