// Package render returns the objects that kustomize and Helm make of manifests/.
package render
