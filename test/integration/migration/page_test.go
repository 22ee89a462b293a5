package migration_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

// page is the page of docs/operations, as the commands below each heading.
type page map[string][]string

const pagePath = "../../../docs/operations/move-from-ocm.md"

// printAndApply is the command of the page that has a pipe.
const printAndApply = "spokelet-hub --print-crds | kubectl apply --server-side --force-conflicts -f -"

// readPage reads the commands of the page: the lines of the blocks that are marked sh.
func readPage(t *testing.T) page {
	t.Helper()
	raw, err := os.ReadFile(pagePath)
	require.NoError(t, err)
	commands, heading, inside := page{}, [2]string{}, false
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside:
			key := heading[0] + " / " + heading[1]
			commands[key] = append(commands[key], line)
		case strings.HasPrefix(line, "## "):
			heading = [2]string{strings.TrimPrefix(line, "## "), ""}
		case strings.HasPrefix(line, "### "):
			heading[1] = strings.TrimPrefix(line, "### ")
		}
	}
	return commands
}

// shell runs the commands of the page. It knows no others than those that the page has.
type shell struct {
	t *testing.T
	// config is the configuration of the hub manager that "kubectl apply -k manifests/hub" starts, and stop ends it.
	config hub.Config
	stop   func()
}

// do runs the commands below a heading of the page.
func (s *shell) do(commands page, heading string) {
	s.t.Helper()
	require.NotEmpty(s.t, commands[heading], "the page has no commands below %q", heading)
	for _, command := range commands[heading] {
		require.NoError(s.t, s.run(strings.Fields(command)), command)
	}
	delete(commands, heading)
}

func (s *shell) run(words []string) error {
	switch {
	case strings.Join(words, " ") == printAndApply:
		return s.applyDefinitions()
	case len(words) > 1 && words[0] == "spokelet-hub":
		return s.hubManager(words[1:])
	case len(words) < 3 || words[0] != "kubectl":
		return errors.New("a command that the test does not know")
	}
	flags := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	namespace := flags.StringP("namespace", "n", "", "")
	replicas := flags.Int64("replicas", -1, "")
	folder := flags.StringP("kustomize", "k", "", "")
	all := flags.BoolP("all-namespaces", "A", false, "")
	if err := flags.Parse(words[2:]); err != nil {
		return err
	}
	args := flags.Args()
	switch {
	case words[1] == "scale" && len(args) == 2 && args[0] == "deployment" && *replicas >= 0:
		return s.scale(*namespace, args[1], *replicas)
	case words[1] == "delete" && len(args) == 2:
		return s.remove(args[0], args[1])
	case words[1] == "apply" && *folder == "manifests/hub" && len(args) == 0:
		return s.applyHub()
	case words[1] == "get" && *all && len(args) == 1:
		return s.list(args[0])
	}
	return errors.New("a command that the test does not know")
}

func (s *shell) scale(namespace, name string, replicas int64) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	u.SetNamespace(namespace)
	u.SetName(name)
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	return plane.Client.Patch(s.t.Context(), u, client.RawPatch("application/merge-patch+json", patch))
}

// remove deletes an object of a cluster-scoped kind that the page names.
func (s *shell) remove(kind, name string) error {
	known := map[string]schema.GroupVersionKind{
		"validatingwebhookconfiguration": {
			Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration",
		},
		"mutatingwebhookconfiguration": {
			Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration",
		},
		"clusterrolebinding": {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	}
	gvk, found := known[kind]
	if !found {
		return fmt.Errorf("kind %s is not known", kind)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetName(name)
	return plane.Client.Delete(s.t.Context(), u)
}

// list reads all objects of a resource, which the page writes as <plural>.<version>.<group>.
func (s *shell) list(resource string) error {
	gvr, _ := schema.ParseResourceArg(resource)
	if gvr == nil {
		return fmt.Errorf("%s is not of the form resource.version.group", resource)
	}
	gvk, err := plane.Client.RESTMapper().KindFor(*gvr)
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return plane.Client.List(s.t.Context(), list)
}

// applyHub applies what the folder holds, and runs the hub manager, which has no kubelet here to run it.
func (s *shell) applyHub() error {
	docs := append(manifests.Hub(), manifests.HubDeployment()...)
	if err := plane.Apply(s.t.Context(), docs...); err != nil {
		return err
	}
	s.config = suite.ConfigureHub(s.t, plane)
	s.config.InstallCRDs = true
	suite.ServeWebhook(s.t, &s.config)
	s.stop = suite.RunHub(s.t, s.config).Stop
	return nil
}

// applyDefinitions applies what the program prints, as kubectl does. That owns none of the fields of OCM's operator.
func (s *shell) applyDefinitions() error {
	var printed bytes.Buffer
	if _, err := hub.ParseFlags([]string{"--print-crds"}, &printed); !errors.Is(err, pflag.ErrHelp) {
		return fmt.Errorf("printing the definitions: %w", err)
	}
	definitions, err := sandbox.Decode(printed.Bytes())
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		err := plane.Client.Apply(s.t.Context(), client.ApplyConfigurationFromUnstructured(definition),
			client.FieldOwner("kubectl"), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying definition %s: %w", definition.GetName(), err)
		}
	}
	return nil
}

// again starts our hub manager after it was removed, and removes it by the same commands.
func (s *shell) again(commands page, remove []string) {
	s.t.Helper()
	s.do(commands, "Move the hub out / Back from step 1")
	suite.Eventually(s.t, func() error {
		if err := converts(s.t, "managedclusteraddons.addon.open-cluster-management.io", s.config.WebhookURL); err != nil {
			return err
		}
		return s.list("managedclusteraddons.v1beta1.addon.open-cluster-management.io")
	})
	s.stop()
	for _, command := range remove {
		require.NoError(s.t, s.run(strings.Fields(command)), command)
	}
}

// hubManager runs the program as an administrator would. Where the shipped hub manager is found by its Service, that of
// the test is found by its address.
func (s *shell) hubManager(args []string) error {
	path := plane.WriteKubeconfig(s.t, plane.Admin(), s.t.TempDir(), "admin")
	args = append(slices.Clone(args), "--kubeconfig="+path, "--webhook-url="+s.config.WebhookURL,
		"--webhook-ca-file="+s.config.WebhookCAFile)
	config, err := hub.ParseFlags(args, os.Stdout)
	if err != nil {
		return err
	}
	return hub.Run(s.t.Context(), config)
}
