package rights_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/test/sandbox"
)

// decisionKey is where an event has what the authorizer said.
const decisionKey = "authorization.k8s.io/decision"

// auditEvent holds what we need of a line of an audit log.
type auditEvent struct {
	Verb      string     `json:"verb"`
	URI       string     `json:"requestURI"`
	Received  time.Time  `json:"requestReceivedTimestamp"`
	User      auditUser  `json:"user"`
	As        *auditUser `json:"impersonatedUser"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Group       string `json:"apiGroup"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

type auditUser struct {
	Name   string   `json:"username"`
	Groups []string `json:"groups"`
}

// request is a request to an API server, as its authorizer saw it.
type request struct {
	plane                                  string
	user                                   string
	groups                                 []string
	verb, group, resource, namespace, name string
	// at is when the API server received it.
	at time.Time
	// dryRun says that it had no effect.
	dryRun bool
	// denied says that the authorizer refused it, forbidden that it or another client did, as admission does, and served
	// that it was answered as its sender wanted.
	denied, forbidden, served bool
	// answer holds what the API server says about a request that was not served.
	answer string
}

// String names the request without what differs from run to run.
func (r request) String() string {
	resource := r.resource
	if r.group != "" {
		resource = r.group + "/" + resource
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s: %s %s %s %s", r.user, r.verb, resource, r.namespace, r.name)), " ")
}

// readAudit returns the requests for resources in the audit log of a control plane. A request in the name of a user
// else is two: the one to take the name, and the one in that name.
func readAudit(plane *sandbox.ControlPlane) ([]request, error) {
	log, err := os.Open(plane.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("opening the audit log of %s: %w", plane.Name, err)
	}
	defer log.Close()
	var all []request
	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all, nil // A line without an end is still being written.
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log of %s: %w", plane.Name, err)
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("decoding the audit log of %s: %w", plane.Name, err)
		}
		if event.ObjectRef.Resource != "" {
			all = append(all, event.requests(plane.Name)...)
		}
	}
}

// requests returns what the authorizer was asked for this event.
func (e auditEvent) requests(plane string) []request {
	decision := e.Annotations[decisionKey]
	r := request{
		plane: plane, user: e.User.Name, groups: e.User.Groups, verb: e.Verb, group: e.ObjectRef.Group,
		resource: e.ObjectRef.Resource, namespace: e.ObjectRef.Namespace, name: e.ObjectRef.Name, at: e.Received,
		dryRun: strings.Contains(e.URI, "dryRun="),
		denied: decision == "forbid", forbidden: e.Response.Code == http.StatusForbidden,
		served: e.Response.Code < http.StatusBadRequest, answer: e.Response.Message,
	}
	if e.ObjectRef.Subresource != "" {
		r.resource += "/" + e.ObjectRef.Subresource
	}
	if e.Verb == "patch" && e.Response.Code == http.StatusCreated {
		// A user who applies an object that does not exist is also asked for the right to create it.
		created := r
		created.verb = "create"
		return append(e.asSomebody(r), e.asSomebody(created)...)
	}
	return e.asSomebody(r)
}

// asSomebody returns a request, and before it the one to take the name in which it was sent, if any.
func (e auditEvent) asSomebody(r request) []request {
	if e.As == nil {
		return []request{r}
	}
	decision := e.Annotations[decisionKey]
	taken := request{
		plane: r.plane, user: r.user, groups: r.groups, verb: "impersonate", at: r.at, resource: "users", name: e.As.Name,
		// Without a decision the request was refused before anybody looked at what it asks for.
		denied: decision == "", forbidden: decision == "", served: decision != "", answer: r.answer,
	}
	if account, ok := strings.CutPrefix(e.As.Name, "system:serviceaccount:"); ok {
		taken.resource = "serviceaccounts"
		taken.namespace, taken.name, _ = strings.Cut(account, ":")
	}
	r.user, r.groups = e.As.Name, e.As.Groups
	if taken.denied {
		return []request{taken}
	}
	return []request{taken, r}
}

// isOurs reports whether a user is the hub manager, the account in whose name it acts, an agent or one that joins.
func isOurs(user string) bool {
	return slices.Contains([]string{
		account(names.NamespaceHub, names.ServiceAccountManager), account(names.NamespaceHub, names.ServiceAccountAddons),
		account(names.NamespaceAgent, names.ServiceAccountAgent),
		account(names.NamespaceBootstrap, names.ServiceAccountBootstrap),
	}, user) || strings.HasPrefix(user, "system:open-cluster-management:")
}

// account is the user name of a ServiceAccount.
func account(namespace, name string) string { return "system:serviceaccount:" + namespace + ":" + name }
