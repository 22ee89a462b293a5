// Package apierror tells errors of the API server apart that have the same code and reason. Their text is all that
// differs, and it may change with a version of Kubernetes: so all that reads it is here, and a test compares it with
// what a real API server of each supported version says (test/integration/hubcluster). What differs by its code,
// reason or cause is asked with k8s.io/apimachinery instead.
package apierror
