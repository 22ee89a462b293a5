package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/hub/deploy"
	"github.com/spokelet/spokelet/hub/deploy/works"
)

// printer writes previews as YAML documents with comments.
type printer struct {
	strings.Builder
	*scene
}

// text writes text.
func (p *printer) text(text string) { _, _ = p.WriteString(text) } // A Builder takes everything.

// comment writes lines of comment. What comes from a file cannot end a comment.
func (p *printer) comment(format string, args ...any) {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, fmt.Sprintf(format, args...))
	p.text(strings.TrimRight("# "+text, " ") + "\n")
}

// list writes a title and entries below it; nothing for no entries.
func (p *printer) list(title string, entries []string) {
	if len(entries) == 0 {
		return
	}
	p.comment("%s:", title)
	for _, entry := range entries {
		p.comment("  - %s", entry)
	}
}

// begin writes what concerns the whole output.
func (p *printer) begin() {
	slices.Sort(p.assumed)
	slices.Sort(p.left)
	p.list("Assumed, because the files do not have it", p.assumed)
	p.list("Not rendered", p.left)
}

// addOn writes one add-on on one cluster.
func (p *printer) addOn(key types.NamespacedName, preview deploy.Preview, output Output) error {
	if p.Len() > 0 {
		p.text("---\n")
	}
	p.summary(key, preview)
	for i, work := range preview.Works {
		if i > 0 {
			p.text("---\n")
		}
		if err := accepted(work.After); err != nil {
			return err
		}
		write := p.work
		if output == OutputObjects {
			write = p.objects
		}
		if err := write(work); err != nil {
			return err
		}
	}
	return nil
}

// accepted returns why the API server of a hub would refuse a work.
func accepted(work *workv1.ManifestWork) error {
	tried := work.DeepCopy()
	tried.OwnerReferences = nil // The object of the hub has a UID.
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tried)
	if err != nil {
		return fmt.Errorf("encoding ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
	}
	known, err := shipped()
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(content, "status")
	of := known[schema.GroupVersionKind{
		Group: workv1.GroupName, Version: workv1.GroupVersion.Version, Kind: "ManifestWork",
	}]
	if err := of.complete(&unstructured.Unstructured{Object: content}); err != nil {
		return fmt.Errorf("the API server refuses ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
	}
	return nil
}

// when returns when a work is written, if that is not when the add-on is installed.
func when(work deploy.PreviewWork) string {
	if work.Purpose == works.PreDelete {
		return ", written when the add-on is deleted"
	}
	return ""
}

// summary writes what a person wants to know of an add-on on a cluster besides its works.
func (p *printer) summary(key types.NamespacedName, preview deploy.Preview) {
	status := preview.AddOn.Status
	p.comment("Add-on %s on cluster %s", key.Name, key.Namespace)
	configs := make([]string, 0, len(preview.Choice.Configs))
	for _, config := range preview.Choice.Configs {
		if config.SpecHash != "" {
			configs = append(configs, fmt.Sprintf("%s, hash %.12s", p.place(config, p.files), config.SpecHash))
		}
	}
	p.list("Configurations", configs)
	p.comment("Namespace of the agent: %s", status.Namespace)
	p.comment("Health: %s", health(status.HealthCheck.Mode))
	p.list("Finalizers of the ManagedClusterAddOn", preview.AddOn.Finalizers)
	p.list("Credentials on the hub", credentials(status.Registrations))
	who := "to add-ons (docs/security.md, \"Consent\")"
	if !p.ofTemplates {
		who = "to the program"
	}
	p.list("Roles on the hub, which an administrator must have granted "+who, roles(preview.Bindings))
	if preview.Pending != "" {
		p.comment("The roles on the hub are bound when the agent has its first credential: %s", preview.Pending)
	}
	remarks := slices.Concat(preview.Remarks, unsupported(preview))
	hosting := meta.FindStatusCondition(status.Conditions, addonv1beta1.ManagedClusterAddOnHostingClusterValidity)
	if hosting != nil && hosting.Status != metav1.ConditionTrue {
		remarks = append(remarks, hosting.Message)
	}
	if len(preview.Works) == 0 {
		remarks = append(remarks, "The add-on deploys nothing on this cluster.")
	}
	p.list("Remarks", remarks)
}

// health describes a health mode.
func health(mode addonv1beta1.HealthCheckMode) string {
	switch mode {
	case addonv1beta1.HealthCheckModeLease, "":
		return "the agent renews a Lease"
	case addonv1beta1.HealthCheckModeCustomized:
		return "the hub judges the works"
	}
	return string(mode)
}

// credentials describes registrations.
func credentials(all []addonv1beta1.RegistrationConfig) []string {
	described := make([]string, 0, len(all))
	for _, registration := range all {
		switch {
		case registration.KubeClient != nil:
			subject := registration.KubeClient.Subject
			described = append(described, fmt.Sprintf("client of the API server: user %s, groups %s", subject.User,
				strings.Join(subject.Groups, " ")))
		case registration.CustomSigner != nil:
			subject := registration.CustomSigner.Subject
			described = append(described, fmt.Sprintf("certificate of signer %s: user %s, groups %s, organization units %s",
				registration.CustomSigner.SignerName, subject.User, listed(subject.Groups, "none"),
				listed(subject.OrganizationUnits, "none")))
		}
	}
	return described
}

// roles describes RoleBindings and ClusterRoleBindings.
func roles(bindings []*rbacv1.RoleBinding) []string {
	described := make([]string, 0, len(bindings))
	for _, binding := range bindings {
		subjects := make([]string, 0, len(binding.Subjects))
		for _, subject := range binding.Subjects {
			subjects = append(subjects, subject.Kind+" "+subject.Name)
		}
		where, kind := "in namespace "+binding.Namespace, "RoleBinding"
		if binding.Namespace == "" {
			where, kind = "in all namespaces", "ClusterRoleBinding"
		}
		described = append(described, fmt.Sprintf("%s %s %s for %s (%s %s)", binding.RoleRef.Kind, binding.RoleRef.Name,
			where, strings.Join(subjects, ", "), kind, binding.Name))
	}
	slices.Sort(described)
	return described
}

// work writes a ManifestWork as it would be created.
func (p *printer) work(preview deploy.PreviewWork) error {
	work := preview.After
	p.comment("Work for the %s cluster%s", preview.Side, when(preview))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(work)
	if err != nil {
		return fmt.Errorf("encoding ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetAPIVersion(workv1.GroupVersion.String())
	u.SetKind("ManifestWork")
	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	owners, _, _ := unstructured.NestedSlice(content, "metadata", "ownerReferences")
	for _, owner := range owners {
		if fields, isMap := owner.(map[string]any); isMap {
			delete(fields, "uid") // The object of the hub has one.
		}
	}
	if len(owners) > 0 {
		if err := unstructured.SetNestedSlice(content, owners, "metadata", "ownerReferences"); err != nil {
			return fmt.Errorf("encoding ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
		}
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding ManifestWork %s/%s: %w", work.Namespace, work.Name, err)
	}
	return p.document(raw)
}

// objects writes the objects of a work.
func (p *printer) objects(work deploy.PreviewWork) error {
	for i := range work.After.Spec.Workload.Manifests {
		if i > 0 {
			p.text("---\n")
		}
		p.comment("Cluster %s, side %s, work %s%s", work.After.Namespace, work.Side, work.After.Name, when(work))
		if err := p.document(work.After.Spec.Workload.Manifests[i].Raw); err != nil {
			return err
		}
	}
	return nil
}

// document writes JSON as YAML.
func (p *printer) document(raw []byte) error {
	text, err := yaml.JSONToYAML(raw)
	if err != nil {
		return fmt.Errorf("encoding an object as YAML: %w", err)
	}
	p.text(string(text))
	return nil
}
