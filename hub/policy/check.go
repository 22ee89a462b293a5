package policy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/internal/apierror"
)

const (
	// poll is the interval of checks.
	poll = 200 * time.Millisecond
	// probed is the policy that must deny the probe.
	probed = "hub-manager-tokens.spokelet.io"
)

// Checker checks the policies of a hub as the hub manager.
type Checker struct {
	// Client has no cache. It reads the policies that Policies returns.
	Client client.Client
	// Policies returns the policies for a hub manager with a ServiceAccount, as YAML files.
	Policies func(namespace, name string) [][]byte
	// Timeout is how long Wait checks again; with 0 it checks once.
	Timeout time.Duration
}

// Wait returns nil when the policies are in force, or an error that lists those that are not, with the remedy.
func (c *Checker) Wait(ctx context.Context) error {
	logger := ctrl.LoggerFrom(ctx).WithName("hub.policy")
	user, err := c.whoAmI(ctx)
	if err != nil {
		return err
	}
	namespace, name, ok := serviceAccount(user)
	if !ok {
		return fmt.Errorf("the hub manager runs as user %q, which is no ServiceAccount, and the admission policies of the "+
			"hub bound ServiceAccounts only: run it as one, or with --require-policies=false where that does not matter, as in "+
			"development", user)
	}
	want, err := parse(c.Policies(namespace, name))
	if err != nil {
		return err
	}
	found := c.check(ctx, want, namespace, name)
	if len(found) > 0 && c.Timeout > 0 {
		logger.Info("waiting until the admission policies of the hub are in force", "problems", found)
		// The only error is the timeout, which the problems explain.
		_ = wait.PollUntilContextTimeout(ctx, poll, c.Timeout, false, func(ctx context.Context) (bool, error) {
			if again := c.check(ctx, want, namespace, name); ctx.Err() == nil {
				found = again
			}
			return len(found) == 0, nil
		})
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for the admission policies of the hub: %w", ctx.Err())
	case len(found) == 0:
		logger.Info("the admission policies of the hub are in force", "serviceAccount", user)
		return nil
	}
	return errors.New(explain(found, namespace, name))
}

// explain lists what is not in force, with the remedy.
func explain(found []string, namespace, name string) string {
	return fmt.Sprintf("the admission policies of the hub are not in force:\n  - %s\napply them with\n"+
		"  spokelet-hub --print-policies --namespace=%s --service-account=%s | kubectl apply -f -\nor, under the names that "+
		"are shipped, with\n  kubectl apply -k manifests/hub/policies\n(--require-policies=false starts without them, and "+
		"then nothing bounds those who let clusters join, agents, and the hub manager itself)",
		strings.Join(found, "\n  - "), namespace, name)
}

// whoAmI returns the user name of the hub manager.
func (c *Checker) whoAmI(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Client.Create(ctx, review); err != nil {
		return "", fmt.Errorf("asking the API server who the hub manager is: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// check returns what is not in force. The probe comes last, because it proves something only when all else is right.
func (c *Checker) check(ctx context.Context, want set, namespace, name string) []string {
	have, found := c.read(ctx, want)
	if len(found) > 0 {
		return found
	}
	if found = problems(want, have); len(found) > 0 {
		return found
	}
	if problem := c.probe(ctx, namespace, name); problem != "" {
		return []string{problem}
	}
	return nil
}

// read reads the existing ones of the wanted policies and bindings, and returns messages about read errors.
func (c *Checker) read(ctx context.Context, want set) (set, []string) {
	have := newSet()
	var unread []string
	for name := range want.policies {
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		switch problem, exists := c.get(ctx, name, policy); {
		case problem != "":
			unread = append(unread, problem)
		case exists:
			have.policies[name] = policy
		}
	}
	for name := range want.bindings {
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
		switch problem, exists := c.get(ctx, name, binding); {
		case problem != "":
			unread = append(unread, problem)
		case exists:
			have.bindings[name] = binding
		}
	}
	slices.Sort(unread)
	return have, slices.Compact(unread)
}

// get reads one object, and returns a message about a read error.
func (c *Checker) get(ctx context.Context, name string, into client.Object) (problem string, exists bool) {
	err := c.Client.Get(ctx, client.ObjectKey{Name: name}, into)
	switch {
	case err == nil:
		return "", true
	case meta.IsNoMatchError(err):
		return "this API server serves no ValidatingAdmissionPolicies of version v1; Kubernetes does from 1.30 on", false
	case apierrors.IsNotFound(err):
		return "", false
	}
	return fmt.Sprintf("reading %T %s: %v", into, name, err), false
}

// probe requests a token for the hub manager itself in a dry run, which a policy must deny.
func (c *Checker) probe(ctx context.Context, namespace, name string) string {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	err := c.Client.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{}, client.DryRunAll)
	switch {
	case apierror.ByPolicy(err, probed):
		return ""
	case err == nil:
		return "the API server does not ask ValidatingAdmissionPolicy " + probed + " yet: it allowed the dry run of a " +
			"token request by the hub manager"
	}
	return fmt.Sprintf("ValidatingAdmissionPolicy %s was to refuse the dry run of a token request by the hub manager, "+
		"which ended with: %v", probed, err)
}

// set contains policies and bindings by name.
type set struct {
	policies map[string]*admissionregistrationv1.ValidatingAdmissionPolicy
	bindings map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

func newSet() set {
	return set{
		policies: map[string]*admissionregistrationv1.ValidatingAdmissionPolicy{},
		bindings: map[string]*admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
	}
}

// parse decodes YAML files that contain only policies and bindings.
func parse(files [][]byte) (set, error) {
	all := newSet()
	for _, file := range files {
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return set{}, fmt.Errorf("splitting the policies: %w", err)
			}
			if err := all.add(document); err != nil {
				return set{}, err
			}
		}
	}
	return all, nil
}

// add adds one YAML document to the set; an empty one is ignored.
func (s set) add(document []byte) error {
	var object map[string]any
	if err := yaml.Unmarshal(document, &object); err != nil {
		return fmt.Errorf("decoding a policy: %w", err)
	}
	if len(object) == 0 {
		return nil
	}
	switch kind := object["kind"]; kind {
	case "ValidatingAdmissionPolicy":
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		if err := yaml.UnmarshalStrict(document, &policy); err != nil {
			return fmt.Errorf("decoding a policy: %w", err)
		}
		s.policies[policy.Name] = &policy
	case "ValidatingAdmissionPolicyBinding":
		var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
		if err := yaml.UnmarshalStrict(document, &binding); err != nil {
			return fmt.Errorf("decoding a binding: %w", err)
		}
		s.bindings[binding.Name] = &binding
	default:
		return fmt.Errorf("decoding a policy: %v is none", kind)
	}
	return nil
}
