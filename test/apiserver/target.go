package apiserver

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// target holds what a request is about.
type target struct {
	// Verb is that of the API: "list" and "deletecollection" without a name.
	Verb                                                         string
	APIGroup, APIVersion, Namespace, Resource, Name, Subresource string
}

// subresourcesOfNamespaces are what may follow the name of a namespace and is not a resource in it.
var subresourcesOfNamespaces = []string{"status", "finalize"}

// readTarget reads the path and the method of a request; false means that it is about no resource.
func readTarget(r *http.Request) (target, bool) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var t target
	switch {
	case len(parts) > 2 && parts[0] == "api":
		t.APIVersion, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		t.APIGroup, t.APIVersion, parts = parts[1], parts[2], parts[3:]
	default:
		return t, false
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		t.Namespace = parts[1]
		if len(parts) > 2 && !slices.Contains(subresourcesOfNamespaces, parts[2]) {
			parts = parts[2:]
		} else {
			t.Namespace = "" // it is the namespace itself
		}
	}
	parts = append(parts, "", "")
	t.Resource, t.Name, t.Subresource = parts[0], parts[1], parts[2]
	t.Verb = verbOf(r, t.Name)
	return t, true
}

// ResourceOf returns the resource that a request is about; empty when it is about none.
func ResourceOf(r *http.Request) string {
	t, _ := readTarget(r)
	return t.Resource
}

// VerbOf returns the verb of the API of a request that is about a resource; empty for others.
func VerbOf(r *http.Request) string {
	t, _ := readTarget(r)
	return t.Verb
}

// verbOf returns the verb of the API for the method of a request.
func verbOf(r *http.Request, name string) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	if watches, err := strconv.ParseBool(r.URL.Query().Get("watch")); err == nil && watches {
		return "watch"
	}
	if name == "" {
		return "list"
	}
	return "get"
}
