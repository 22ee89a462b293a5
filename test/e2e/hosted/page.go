package hosted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/spokelet/spokelet/test/e2e/suite"
)

// pagePath is the page whose commands are run, from the folder of the module.
const pagePath = "../../docs/operations/hosted.md"

// The sections of the page that have commands.
const (
	onManaged = "1. On the managed cluster"
	forAgent  = "2. The kubeconfig of the managed cluster"
	onHosting = "3. On the hosting cluster"
	consent   = "Hosted add-ons"
	remove    = "Remove"
)

// readPage returns the commands of a page by the headings above them: the lines of the blocks that are marked sh.
func readPage(path string) (map[string][]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the page: %w", err)
	}
	commands, heading, inside := map[string][]string{}, "", false
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```sh"
		case inside:
			commands[heading] = append(commands[heading], line)
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimLeft(line, "# ")
		}
	}
	return commands, nil
}

// shell runs the commands of the page, and knows no others.
type shell struct {
	fleet *suite.Fleet
	// files are what the commands wrote.
	files map[string][]byte
}

// newShell returns a shell in a folder with the kubeconfigs that the page begins with.
func newShell(ctx context.Context, f *suite.Fleet) (*shell, error) {
	bootstrap, err := f.BootstrapKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	return &shell{fleet: f, files: map[string][]byte{"bootstrap.kubeconfig": bootstrap, "agent.kubeconfig": nil}}, nil
}

// do runs the commands of some sections.
func (s *shell) do(ctx context.Context, sections ...string) error {
	page, err := readPage(pagePath)
	if err != nil {
		return err
	}
	for _, section := range sections {
		if len(page[section]) == 0 {
			return fmt.Errorf("%s has no commands below %q", pagePath, section)
		}
		for _, line := range page[section] {
			c, err := parse(line)
			if err == nil {
				err = s.run(ctx, c)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
		}
	}
	return nil
}

// command is one of kubectl.
type command struct {
	words []string
	// config is the kubeconfig, to the file that receives the output.
	config, to                     string
	namespace, folder, file, token string
	// fromFile, ca and user are further flags.
	fromFile, ca, user string
}

// parse reads a line of the page.
func parse(line string) (command, error) {
	var c command
	line, c.to, _ = strings.Cut(line, " > ")
	line = strings.ReplaceAll(line, "$(cat token)", "token") // the file stands for its content
	words := strings.Fields(line)
	if len(words) == 0 || words[0] != "kubectl" {
		return c, errors.New("it is no command of kubectl")
	}
	flags := pflag.NewFlagSet("kubectl", pflag.ContinueOnError)
	flags.StringVar(&c.config, "kubeconfig", "", "")
	flags.StringVarP(&c.namespace, "namespace", "n", "", "")
	flags.StringVarP(&c.folder, "kustomize", "k", "", "")
	flags.StringVarP(&c.file, "filename", "f", "", "")
	flags.StringVar(&c.token, "token", "", "")
	flags.StringVar(&c.fromFile, "from-file", "", "")
	flags.StringVar(&c.user, "user", "", "")
	flags.StringVar(&c.ca, "certificate-authority", "", "")
	for _, name := range []string{"duration", "server", "cluster"} {
		flags.String(name, "", "")
	}
	flags.StringP("output", "o", "", "")
	flags.Bool("embed-certs", false, "")
	flags.Bool("overwrite", false, "")
	err := flags.Parse(words[1:])
	c.words = flags.Args()
	return c, err
}

// run runs a command. One that names no kubeconfig is for the hub.
func (s *shell) run(ctx context.Context, c command) error {
	on := s.fleet.Managed()
	if c.config == "hosting.kubeconfig" {
		on = s.fleet.Cluster(suite.Hosting)
	}
	switch verb := strings.Join(c.words, " "); {
	case verb == "apply" || verb == "delete":
		objects, err := s.objects(c)
		if err != nil {
			return err
		}
		if verb == "delete" {
			return suite.Delete(ctx, on, objects)
		}
		return suite.Apply(ctx, on, objects)
	case strings.HasPrefix(verb, "create token "):
		token, err := suite.AccountToken(ctx, on, c.namespace, c.words[2])
		s.files[c.to] = []byte(token)
		return err
	case verb == "get configmap kube-root-ca.crt":
		var ca corev1.ConfigMap
		err := on.Client.Get(ctx, client.ObjectKey{Namespace: c.namespace, Name: c.words[2]}, &ca)
		s.files[c.to] = []byte(ca.Data["ca.crt"])
		return err
	case strings.HasPrefix(verb, "create secret generic "):
		key, file, _ := strings.Cut(c.fromFile, "=")
		if key != "kubeconfig" || s.files[file] == nil {
			return fmt.Errorf("there is no file %s for key %s", file, key)
		}
		return suite.PutKubeconfig(ctx, on, c.namespace, c.words[3], s.files[file])
	case c.words[0] == "config":
		return s.config(c)
	case strings.HasPrefix(verb, "annotate managedcluster ") && len(c.words) == 4 && c.config == "":
		key, value, _ := strings.Cut(c.words[3], "=")
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: c.words[2]}}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
		return s.fleet.Hub().Client.Patch(ctx, mc, client.RawPatch(types.MergePatchType, patch))
	}
	return errors.New("a command that the suite does not know")
}

// objects are what "kubectl apply" reads.
func (s *shell) objects(c command) ([]*unstructured.Unstructured, error) {
	if folder, ok := strings.CutPrefix(c.file, "manifests/"); ok {
		return s.fleet.Manifests(folder)
	}
	folder, ok := strings.CutPrefix(c.folder, "manifests/")
	if !ok {
		return nil, errors.New("it names no folder below manifests/")
	}
	return s.fleet.Render(suite.Overlay{
		Name: "page-" + filepath.Base(folder), Base: folder, Tag: s.fleet.Images().Tag,
	})
}

// config changes a kubeconfig.
func (s *shell) config(c command) error {
	config := clientcmdapi.NewConfig()
	if content := s.files[c.config]; content != nil {
		var err error
		if config, err = clientcmd.Load(content); err != nil {
			return fmt.Errorf("reading %s: %w", c.config, err)
		}
	}
	switch name := c.words[2]; c.words[1] {
	case "set-cluster":
		server, err := s.address()
		if err != nil {
			return err
		}
		config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: s.files[c.ca]}
	case "set-credentials":
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: string(s.files[c.token])}
	case "set-context":
		config.Contexts[name] = &clientcmdapi.Context{Cluster: "managed", AuthInfo: c.user}
	case "use-context":
		config.CurrentContext = name
	default:
		return errors.New("a command that the suite does not know")
	}
	written, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("writing %s: %w", c.config, err)
	}
	s.files[c.config] = written
	return nil
}

// address is that of the managed cluster for pods of the hosting cluster, in place of the one on the page.
func (s *shell) address() (string, error) {
	text, err := s.fleet.Managed().InternalKubeconfig()
	if err != nil {
		return "", err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		return "", fmt.Errorf("reading the kubeconfig of the managed cluster: %w", err)
	}
	return config.Host, nil
}
