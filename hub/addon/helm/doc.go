// Package helm makes the objects of an add-on from a Helm chart, with Helm's own engine as a library. It is a module of
// its own, so that programs without a chart are built without Helm.
//
// The chart is a folder of an embed.FS, with its dependencies in charts/. Files whose names begin with "_" or "." are
// embedded only by a pattern such as "all:chart".
//
// Values of the add-on override those of the chart. Built in are:
//
//   - clusterName, addonInstallNamespace and installMode (Default or Hosted); nothing overrides them.
//   - hubKubeConfigSecret, where the agent gets credentials, managedKubeConfigSecret, and hostingClusterCapabilities,
//     whose KubeVersion.Version is empty without a hosting cluster; values of the author override them.
//
// Values are used as a values file would have them: Go types become what their JSON is.
//
// Release has the name of the add-on and the namespace of the agent. Capabilities has the Kubernetes version of the
// managed cluster and no API versions. There is no cluster to look anything up in.
//
// The CustomResourceDefinitions in crds/ come first, then the objects in the order in which Helm installs kinds.
// NOTES.txt and documents without a kind are left out.
//
// Helm's hooks: an object of pre-install or post-install is deployed like any other. A Job or Pod of pre-delete becomes
// a pre-delete hook of the add-on; what it needs, such as a ServiceAccount of pre-delete, is deployed like any other.
// Tests are left out. An object of other hooks only is an error, because nothing would run it at its time.
package helm
