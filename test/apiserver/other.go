package apiserver

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// serveOther answers what is not about objects: discovery, the version and health.
func (s *Server) serveOther(r *request) *http.Response {
	path := strings.Trim(r.http.URL.Path, "/")
	parts := strings.Split(path, "/")
	var answer any
	switch {
	case path == "version":
		answer = version.Info{Major: "1", Minor: "35", GitVersion: "v1.35.4"}
	case path == "healthz" || path == "readyz" || path == "livez":
		return s.answer(r, http.StatusOK, []byte("ok"))
	case path == "api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case path == "apis":
		answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: s.groups()}
	case path == "api/v1":
		answer = s.resources("", "v1")
	case len(parts) == 3 && parts[0] == "apis":
		answer = s.resources(parts[1], parts[2])
	}
	if list, ok := answer.(*metav1.APIResourceList); answer == nil || ok && list == nil {
		return s.answer(r, http.StatusNotFound, []byte("404 page not found\n"))
	}
	return s.answer(r, http.StatusOK, encode(answer))
}

// groups are the groups that are served, but for the one without a name. The version that is stored is preferred.
func (s *Server) groups() []metav1.APIGroup {
	var all []metav1.APIGroup
	for _, t := range s.sorted() {
		if t.resource.Group == "" {
			continue
		}
		at := slices.IndexFunc(all, func(g metav1.APIGroup) bool { return g.Name == t.resource.Group })
		if at < 0 {
			at = len(all)
			all = append(all, metav1.APIGroup{Name: t.resource.Group})
		}
		for _, version := range append([]string{t.resource.Version}, t.resource.Others...) {
			has := metav1.GroupVersionForDiscovery{GroupVersion: t.resource.Group + "/" + version, Version: version}
			if !slices.Contains(all[at].Versions, has) {
				all[at].Versions = append(all[at].Versions, has)
			}
		}
		all[at].PreferredVersion = all[at].Versions[0]
	}
	return all
}

// resources are those of a version; nil when it is not served.
func (s *Server) resources(group, version string) *metav1.APIResourceList {
	var list *metav1.APIResourceList
	for _, t := range s.sorted() {
		if t.resource.Group != group || !t.resource.serves(version) {
			continue
		}
		if list == nil {
			list = &metav1.APIResourceList{
				TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
				GroupVersion: schema.GroupVersion{Group: group, Version: version}.String(),
			}
		}
		list.APIResources = append(list.APIResources, t.resource.described()...)
	}
	return list
}

// review answers questions about rights: everything is allowed. It returns nil for other requests.
func (s *Server) review(r *request) *http.Response {
	if r.APIGroup != "authorization.k8s.io" || r.Verb != "create" {
		return nil
	}
	o, err := r.decode(r.body)
	if err != nil {
		return s.answerError(r, err)
	}
	o["status"] = map[string]any{"allowed": true}
	return s.answer(r, http.StatusCreated, encode(o))
}

// token answers a request for a token of a ServiceAccount: a JWT that nobody signed.
func (s *Server) token(r *request) (int, any, error) {
	account, err := s.find(r)
	if err != nil {
		return 0, nil, err
	}
	o, err := r.decode(r.body)
	if err != nil {
		return 0, nil, err
	}
	spec, _ := o["spec"].(map[string]any)
	lifetime := time.Hour
	if seconds, ok := spec["expirationSeconds"].(int64); ok {
		lifetime = time.Duration(seconds) * time.Second
	}
	now := s.clock.Now()
	part := func(value any) string { return base64.RawURLEncoding.EncodeToString(encode(value)) }
	claims := map[string]any{
		"sub": fmt.Sprintf("system:serviceaccount:%s:%s", r.Namespace, r.Name),
		"aud": []string{"https://kubernetes.default.svc"},
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(lifetime).Unix(),
		"kubernetes.io": map[string]any{
			"namespace": r.Namespace, "serviceaccount": map[string]any{"name": r.Name, "uid": account.meta().GetUID()},
		},
	}
	o["status"] = map[string]any{
		"token":               part(map[string]any{"alg": "none"}) + "." + part(claims) + ".",
		"expirationTimestamp": instant(now.Add(lifetime)),
	}
	o["apiVersion"], o["kind"] = authenticationv1.SchemeGroupVersion.String(), "TokenRequest"
	return http.StatusCreated, encode(o), nil
}
