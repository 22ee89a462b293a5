// Package addonconfig determines which configuration an add-on is to have, and keeps the content of configurations.
//
// DesiredConfigs applies the precedence of the specs; NewTarget adds the hashes that were read, so that a Target is the
// complete desired configuration of one add-on, or names what is missing. Both are pure. The code that
// configures one add-on and the code that plans a rollout over all of them compute the same Target.
//
// Store reads configurations, and keeps the content of those that are rolled out as ControllerRevisions in the
// namespace of the hub manager, by their hash. So a cluster that a rollout has not reached, or that goes back, is
// rendered from the content that it has, also after the configuration was edited in place or deleted. Configurations of
// kinds that the hub manager does not render are watched one by one, within the share of their add-on.
package addonconfig
