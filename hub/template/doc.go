// Package template makes add-ons without code: it turns an AddOnTemplate into the agent of an add-on, an addon.Agent.
//
// Rendering is pure: Render takes a Template, the AddOnDeploymentConfig that the add-on uses (or none), the cluster and
// the name of the add-on, and returns objects. A fleet renders one template thousands of times, so what is the same on
// all clusters is done once: Compile (compile.go) finds the places of a template that differ, and Compiled.Render
// copies only the way to these places. In order:
//
//  1. values.go: the variables. HUB_KUBECONFIG where the agent registers; then what the AddOnDeploymentConfig defines;
//     then CLUSTER_NAME and INSTALL_NAMESPACE, which nobody can override.
//  2. substitute.go: {{NAME}} in every string of every manifest, keys too. It works on decoded strings, so a value can
//     never change the structure of a manifest. A name without a value is an error; a value is not looked at again.
//     fields.go: a value becomes a number or a boolean where its field takes one.
//  3. decorate.go, workloads.go, references.go: pods get the variables as environment, the credentials as
//     volumes, node placement, image mirrors, proxy settings and resource requirements.
//  4. namespace.go: everything moves to the install namespace where the AddOnDeploymentConfig names one.
//
// Objects are edited as they are, without Go types in between, so no field is lost or invented. Everything that is
// wrong with a template is reported at once (problem.go): which manifest, where in it, and what to do.
//
// registration.go reads from the template what credentials and rights the agent gets on the hub, agent.go and
// registry.go find the template and configuration that the rollout chose for a cluster. That choice is in a status
// that the agent of the cluster may write, so it is believed only where the hub's own objects say the same.
package template
