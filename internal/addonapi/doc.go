// Package addonapi reads and writes add-ons as v1beta1 objects, whichever version the hub stores.
//
// OCM ships the kinds ClusterManagementAddOn and ManagedClusterAddOn with v1alpha1 as the stored version and v1beta1
// as a served one that a webhook converts. Client reads and writes the stored version and converts in process, by the
// same functions that the webhook of the hub serves, so neither the hub manager nor an agent needs the webhook for
// its own work, and no write needs a call of the webhook. With a hub that no longer serves v1alpha1, Client uses
// v1beta1. The one exception is AutoDiscovery, which reads a field of v1beta1 for add-ons that ask for it.
//
// Conversion copies first and never shares memory with its input. The rules are those of the add-on API v1beta1
// document and of docs/reference/hub.md, "Conversion".
package addonapi
