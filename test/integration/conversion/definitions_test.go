package conversion_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/spokelet/spokelet/hub"
	"github.com/spokelet/spokelet/hub/webhook"
	"github.com/spokelet/spokelet/internal/confighash"
	"github.com/spokelet/spokelet/internal/names"
	"github.com/spokelet/spokelet/manifests"
	"github.com/spokelet/spokelet/test/sandbox"
	"github.com/spokelet/spokelet/test/suite"
)

const (
	managements = "clustermanagementaddons.addon.open-cluster-management.io"
	addOns      = "managedclusteraddons.addon.open-cluster-management.io"
	templates   = "addontemplates.addon.open-cluster-management.io"
)

// second is a control plane whose definitions the tests of this file install again, each in its own way.
var second struct {
	plane *sandbox.ControlPlane
	admin client.Client
}

func setUpSecond(ctx context.Context) error {
	var err error
	if second.plane, err = sandbox.Start(ctx, sandbox.Options{Name: "definitions"}); err != nil {
		return err
	}
	if err := second.plane.Apply(ctx, append(manifests.CRDs(), manifests.Hub()...)...); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		addonv1alpha1.Install, addonv1beta1.Install, corev1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("building a scheme: %w", err)
		}
	}
	second.admin, err = client.New(second.plane.Admin(), client.Options{Scheme: scheme})
	return err
}

// shipped returns the definitions of add-ons as they are shipped, after edits.
func shipped(t *testing.T, edits ...func(*unstructured.Unstructured)) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, doc := range manifests.CRDs() {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(doc, &u.Object))
		if group, _, _ := unstructured.NestedString(u.Object, "spec", "group"); group != addonv1beta1.GroupName {
			continue
		}
		for _, edit := range edits {
			edit(u)
		}
		all = append(all, u)
	}
	return all
}

// bothTemplates stores one of the two versions of AddOnTemplates.
func bothTemplates(stored string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if u.GetName() != templates {
			return
		}
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		for _, version := range versions {
			if version, ok := version.(map[string]any); ok {
				version["storage"] = version["name"] == stored
			}
		}
		_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
	}
}

// alphaTemplates leaves the definition of AddOnTemplates only its first version, as OCM 1.3 has it.
func alphaTemplates(u *unstructured.Unstructured) {
	if u.GetName() == templates {
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		_ = unstructured.SetNestedSlice(u.Object, versions[:1], "spec", "versions")
	}
}

// converting puts a conversion into the definitions of two versions.
func converting(conversion map[string]any) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions"); len(versions) == 2 {
			_ = unstructured.SetNestedMap(u.Object, conversion, "spec", "conversion")
		}
	}
}

// ofOCM is the conversion that an installation of OCM leaves: its Service is gone with it.
func ofOCM() map[string]any {
	return map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"clientConfig": map[string]any{
			"service": map[string]any{
				"namespace": names.NamespaceHub, "name": "cluster-manager-addon-webhook", "path": "/convert", "port": int64(9443),
			},
			"caBundle": base64.StdEncoding.EncodeToString(converter.authority.certificatePEM()),
		},
		"conversionReviewVersions": []any{"v1", "v1beta1"},
	}}
}

// removeDefinitions deletes the definitions of add-ons and all add-ons with them.
func removeDefinitions(t *testing.T) {
	t.Helper()
	// Nothing that nobody converts can be deleted.
	patch := func(name, patch string) error {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return client.IgnoreNotFound(second.admin.Patch(t.Context(), crd, client.RawPatch(types.MergePatchType, []byte(patch))))
	}
	for _, u := range shipped(t) {
		require.NoError(t, patch(u.GetName(), `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	}
	for _, u := range shipped(t) {
		require.NoError(t, client.IgnoreNotFound(second.admin.Delete(t.Context(), u)))
	}
	tries := 0
	suite.Eventually(t, func() error {
		tries++
		for _, u := range shipped(t) {
			err := second.admin.Get(t.Context(), client.ObjectKeyFromObject(u), u)
			if apierrors.IsNotFound(err) {
				continue
			}
			// The API server makes long pauses when it is not ready to list what it is to delete; a change wakes it.
			poke := fmt.Sprintf(`{"metadata":{"annotations":{"tries":"%d"}}}`, tries)
			return fmt.Errorf("%s is there: %w, %v", u.GetName(), errors.Join(err, patch(u.GetName(), poke)), u.Object["status"])
		}
		return nil
	})
}

// install installs definitions in some way, and returns when they are served.
func install(t *testing.T, definitions []*unstructured.Unstructured, by func(*unstructured.Unstructured) error) {
	t.Helper()
	removeDefinitions(t)
	for _, u := range definitions {
		require.NoError(t, by(u))
	}
	suite.Eventually(t, func() error {
		for _, list := range []client.ObjectList{
			&addonv1alpha1.AddOnTemplateList{}, &addonv1alpha1.ManagedClusterAddOnList{},
			&addonv1alpha1.ClusterManagementAddOnList{}, &addonv1beta1.AddOnDeploymentConfigList{},
		} {
			if err := second.admin.List(t.Context(), list); err != nil {
				return err
			}
		}
		return nil
	})
}

func createdBy(ctx context.Context, fieldManager string) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		return second.admin.Create(ctx, u, client.FieldOwner(fieldManager))
	}
}

func appliedBy(
	ctx context.Context, fieldManager string, options ...client.ApplyOption,
) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		return second.admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(u),
			append(options, client.FieldOwner(fieldManager))...)
	}
}

// running is a hub manager whose readiness can be asked for.
type running struct {
	address string
	stop    func()
}

// runHub runs the hub manager until the end of the test.
func runHub(t *testing.T, change func(*hub.Config)) *running {
	t.Helper()
	ports, err := sandbox.FreePorts(2)
	require.NoError(t, err)
	config := suite.ConfigureHub(t, &suite.Plane{ControlPlane: second.plane})
	config.HealthAddress = "127.0.0.1:" + strconv.Itoa(ports[0])
	config.WebhookBindAddress, config.WebhookPort = "127.0.0.1", ports[1]
	config.WebhookURL = "https://127.0.0.1:" + strconv.Itoa(ports[1]) + webhook.Path
	config.InstallCRDs = true
	if change != nil {
		change(&config)
	}
	r := &running{address: "http://" + config.HealthAddress + "/readyz", stop: suite.RunHub(t, config).Stop}
	return r
}

// readyz returns what the hub manager says about its readiness.
func (r *running) readyz(ctx context.Context) (bool, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.address, nil)
	if err != nil {
		return false, "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode == http.StatusOK, string(body), err
}

// becomesReady waits until the hub manager is ready.
func (r *running) becomesReady(t *testing.T) {
	t.Helper()
	suite.Eventually(t, func() error {
		ready, said, err := r.readyz(t.Context())
		if err == nil && !ready {
			err = errors.New(said)
		}
		return err
	})
}

// saysWhyNot waits until the hub manager says why it is not ready.
func (r *running) saysWhyNot(t *testing.T, words ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		ready, said, err := r.readyz(t.Context())
		if err != nil {
			return err
		}
		for _, word := range words {
			if ready || !strings.Contains(said, word) {
				return fmt.Errorf("ready is %t, and it says: %s", ready, said)
			}
		}
		return nil
	})
}

// hasEvent waits for an Event about a definition, in the API that kubectl describe reads.
func hasEvent(t *testing.T, definition, reason string, words ...string) {
	t.Helper()
	suite.Eventually(t, func() error {
		var events corev1.EventList
		if err := second.admin.List(t.Context(), &events, client.InNamespace("default")); err != nil {
			return err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := second.admin.Get(t.Context(), client.ObjectKey{Name: definition}, &crd); err != nil {
			return err
		}
		var said []string
		for _, event := range events.Items {
			if about := event.InvolvedObject; about.Kind != "CustomResourceDefinition" || about.UID != crd.UID {
				continue
			}
			said = append(said, event.Reason+": "+event.Message)
			if event.Reason == reason && !slices.ContainsFunc(words, func(word string) bool {
				return !strings.Contains(event.Message, word)
			}) {
				return nil
			}
		}
		return fmt.Errorf("the Events are %q", said)
	})
}

// conversionOf returns the conversion of a definition.
func conversionOf(t *testing.T, name string) *apiextensionsv1.CustomResourceConversion {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, second.admin.Get(t.Context(), client.ObjectKey{Name: name}, &crd))
	return crd.Spec.Conversion
}

// TestNoFieldIsLostWhoeverInstalledTheDefinitions runs a default installation of the hub manager, with a certificate
// that it makes itself, over definitions that another client installed: all that is written in one version is read in
// both.
// Shows: hub/no-field-lost
func TestNoFieldIsLostWhoeverInstalledTheDefinitions(t *testing.T) {
	ctx := t.Context()
	withOCM := func(u *unstructured.Unstructured) { converting(ofOCM())(u) }
	none := converting(map[string]any{"strategy": "None"})
	gone := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"clientConfig": map[string]any{"url": "https://127.0.0.1:1/convert"}, "conversionReviewVersions": []any{"v1"},
	}}
	for sentence, tc := range map[string]struct {
		edits []func(*unstructured.Unstructured)
		by    func(*unstructured.Unstructured) error
	}{
		"kubectl apply --server-side": {by: appliedBy(ctx, "kubectl")},
		"kubectl create":              {by: createdBy(ctx, "kubectl-create")},
		"a GitOps tool with force": {
			edits: []func(*unstructured.Unstructured){bothTemplates("v1alpha1"), none},
			by:    appliedBy(ctx, "argocd-controller", client.ForceOwnership),
		},
		"OCM": {
			edits: []func(*unstructured.Unstructured){bothTemplates("v1alpha1"), withOCM},
			by:    createdBy(ctx, "registration-operator"),
		},
		"OCM 1.3, with templates in one version": {
			edits: []func(*unstructured.Unstructured){alphaTemplates, withOCM},
			by:    createdBy(ctx, "registration-operator"),
		},
		"OCM by server-side apply, with templates stored in v1beta1": {
			edits: []func(*unstructured.Unstructured){bothTemplates("v1beta1"), withOCM},
			by:    appliedBy(ctx, "registration-operator", client.ForceOwnership),
		},
		"an earlier hub manager, which owned the conversion with the rest": {
			edits: []func(*unstructured.Unstructured){converting(gone)},
			by:    appliedBy(ctx, "spokelet-hub"),
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			install(t, shipped(t, tc.edits...), tc.by)
			r := runHub(t, nil)
			r.becomesReady(t)
			everyFieldIsKept(t, slices.ContainsFunc(shipped(t, tc.edits...), func(u *unstructured.Unstructured) bool {
				versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
				return u.GetName() == templates && len(versions) == 2
			}))
			// What was so once stays so when the hub manager starts again.
			r.stop()
			again := runHub(t, nil)
			again.becomesReady(t)
			assert.Equal(t, apiextensionsv1.WebhookConverter, conversionOf(t, managements).Strategy)
			assert.Equal(t, apiextensionsv1.WebhookConverter, conversionOf(t, addOns).Strategy)
		})
	}
	t.Run("nobody", func(t *testing.T) {
		removeDefinitions(t)
		r := runHub(t, nil)
		r.becomesReady(t)
		everyFieldIsKept(t, true)
	})
}

// everyFieldIsKept writes every kind of add-ons in v1beta1 and reads it in both versions.
func everyFieldIsKept(t *testing.T, templatesToo bool) {
	t.Helper()
	keptManagement(t)
	keptAddOn(t)
	if templatesToo {
		keptTemplate(t)
	}
}

func keptManagement(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	placement := addonv1beta1.PlacementRef{Namespace: "ns", Name: "p"}
	config := addonv1beta1.AddOnConfig{
		ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "g", Resource: "with"},
		ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "ns", Name: "n"},
	}
	written := &addonv1beta1.ClusterManagementAddOn{
		// The hub manager leaves its status alone.
		ObjectMeta: metav1.ObjectMeta{Name: "written", Annotations: map[string]string{names.AnnotationLifecycle: "self"}},
		Spec: addonv1beta1.ClusterManagementAddOnSpec{
			AddOnMeta:      addonv1beta1.AddOnMeta{DisplayName: "Hello", Description: "says hello"},
			DefaultConfigs: []addonv1beta1.AddOnConfig{config},
			InstallStrategy: addonv1beta1.InstallStrategy{
				Type: addonv1beta1.AddonInstallStrategyPlacements,
				Placements: []addonv1beta1.PlacementStrategy{{
					PlacementRef: placement, Configs: []addonv1beta1.AddOnConfig{config},
				}},
			},
		},
	}
	beta := written.DeepCopy()
	require.NoError(t, second.admin.Create(ctx, beta))
	hash := &addonv1beta1.ConfigSpecHash{ConfigReferent: config.ConfigReferent, SpecHash: "h"}
	status := addonv1beta1.ClusterManagementAddOnStatus{
		DefaultConfigReferences: []addonv1beta1.DefaultConfigReference{{
			ConfigGroupResource: config.ConfigGroupResource, DesiredConfig: hash,
		}},
		InstallProgressions: []addonv1beta1.InstallProgression{{PlacementRef: placement}},
	}
	// The hub manager writes, too.
	suite.Eventually(t, func() error {
		if err := second.admin.Get(ctx, client.ObjectKeyFromObject(written), beta); err != nil {
			return err
		}
		status.DeepCopyInto(&beta.Status)
		return second.admin.Status().Update(ctx, beta)
	})

	require.NoError(t, second.admin.Get(ctx, client.ObjectKeyFromObject(written), beta))
	assert.Equal(t, written.Spec.AddOnMeta, beta.Spec.AddOnMeta)
	assert.Equal(t, written.Spec.DefaultConfigs, beta.Spec.DefaultConfigs)
	assert.Equal(t, written.Spec.InstallStrategy.Placements[0].Configs, beta.Spec.InstallStrategy.Placements[0].Configs)
	assert.Equal(t, status.DefaultConfigReferences, beta.Status.DefaultConfigReferences)
	assert.Len(t, beta.Status.InstallProgressions, 1)
	alpha := &addonv1alpha1.ClusterManagementAddOn{}
	require.NoError(t, second.admin.Get(ctx, client.ObjectKeyFromObject(written), alpha))
	require.Len(t, alpha.Spec.SupportedConfigs, 1)
	assert.Equal(t, addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "n"}, *alpha.Spec.SupportedConfigs[0].DefaultConfig)
	assert.Equal(t, "h", alpha.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash)
	require.NoError(t, second.admin.Delete(ctx, beta))
}

func keptAddOn(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	written := &addonv1beta1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{
			Name: "written", Namespace: "default",
			Annotations: map[string]string{names.AnnotationInstallNamespace: "somewhere", "mine": "kept"},
		},
		Spec: addonv1beta1.ManagedClusterAddOnSpec{Configs: []addonv1beta1.AddOnConfig{{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "g", Resource: "r"},
			ConfigReferent:      addonv1beta1.ConfigReferent{Namespace: "ns", Name: "n"},
		}}},
	}
	status := addonv1beta1.ManagedClusterAddOnStatus{
		Namespace: "somewhere", HealthCheck: addonv1beta1.HealthCheck{Mode: addonv1beta1.HealthCheckModeLease},
		Registrations: []addonv1beta1.RegistrationConfig{
			{Type: addonv1beta1.KubeClient, KubeClient: &addonv1beta1.KubeClientConfig{
				Driver:  "token",
				Subject: addonv1beta1.KubeClientSubject{BaseSubject: addonv1beta1.BaseSubject{User: "u", Groups: []string{"g"}}},
			}},
			{Type: addonv1beta1.CustomSigner, CustomSigner: &addonv1beta1.CustomSignerConfig{
				SignerName: "example.com/s",
				Subject: addonv1beta1.Subject{
					BaseSubject: addonv1beta1.BaseSubject{User: "v"}, OrganizationUnits: []string{"unit"},
				},
			}},
		},
		ConfigReferences: []addonv1beta1.ConfigReference{{
			ConfigGroupResource: addonv1beta1.ConfigGroupResource{Group: "g", Resource: "r"}, LastObservedGeneration: 3,
			DesiredConfig: &addonv1beta1.ConfigSpecHash{
				ConfigReferent: addonv1beta1.ConfigReferent{Namespace: "ns", Name: "n"}, SpecHash: "h",
			},
		}},
	}
	beta := written.DeepCopy()
	require.NoError(t, second.admin.Create(ctx, beta))
	suite.Eventually(t, func() error {
		if err := second.admin.Get(ctx, client.ObjectKeyFromObject(written), beta); err != nil {
			return err
		}
		status.DeepCopyInto(&beta.Status)
		return second.admin.Status().Update(ctx, beta)
	})

	require.NoError(t, second.admin.Get(ctx, client.ObjectKeyFromObject(written), beta))
	assert.Equal(t, written.Annotations, beta.Annotations)
	assert.Equal(t, written.Spec, beta.Spec)
	assert.Equal(t, status.Registrations, beta.Status.Registrations)
	assert.Equal(t, status.ConfigReferences, beta.Status.ConfigReferences)
	assert.Equal(t, status.HealthCheck, beta.Status.HealthCheck)
	alpha := &addonv1alpha1.ManagedClusterAddOn{}
	require.NoError(t, second.admin.Get(ctx, client.ObjectKeyFromObject(written), alpha))
	assert.Equal(t, "somewhere", alpha.Spec.InstallNamespace)
	assert.Equal(t, map[string]string{"mine": "kept"}, alpha.Annotations)
	assert.Equal(t, "token", alpha.Status.KubeClientDriver)
	require.Len(t, alpha.Status.Registrations, 2)
	assert.Equal(t, []string{"unit"}, alpha.Status.Registrations[1].Subject.OrganizationUnits)
	assert.Equal(t, "n", alpha.Status.ConfigReferences[0].Name)
	require.NoError(t, second.admin.Delete(ctx, beta))
}

// keptTemplate writes a template as an object without a Go type: the API has none for v1beta1 yet.
func keptTemplate(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	spec := map[string]any{
		"addonName": "hello",
		"agentSpec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "hello", "namespace": "default"},
			"data": map[string]any{"n": "1"},
		}}}},
		"registration": []any{map[string]any{"type": "KubeClient", "kubeClient": map[string]any{
			"hubPermissions": []any{map[string]any{
				"type": "CurrentCluster", "currentCluster": map[string]any{"clusterRoleName": "r"},
			}},
		}}},
	}
	template := func(version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(addonv1beta1.GroupName + "/" + version)
		u.SetKind("AddOnTemplate")
		u.SetName("written")
		return u
	}
	written := template("v1beta1")
	written.Object["spec"] = runtime.DeepCopyJSON(spec)
	require.NoError(t, second.admin.Create(ctx, written))
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		read := template(version)
		require.NoError(t, second.admin.Get(ctx, client.ObjectKeyFromObject(written), read))
		assert.Equal(t, spec, read.Object["spec"], version)
		assert.ElementsMatch(t, []string{"apiVersion", "kind", "metadata", "spec"}, slices.Collect(maps.Keys(read.Object)))
	}
	require.NoError(t, second.admin.Delete(ctx, written))
}

// TestAHubManagerIsNotReadyWhileTheAPIServerRenames starts it where it may change nothing. A webhook of another client
// makes it ready, as long as that serves.
func TestAHubManagerIsNotReadyWhileTheAPIServerRenames(t *testing.T) {
	install(t, shipped(t), createdBy(t.Context(), "kubectl-create"))
	r := runHub(t, func(c *hub.Config) { c.InstallCRDs = false })
	r.saysWhyNot(t, "[-]conversion ", managements, addOns, "by renaming the version", "--webhook-service")
	hasEvent(t, managements, "ConversionNotServed", "by renaming the version, which drops the fields that differ")

	var crd apiextensionsv1.CustomResourceDefinition
	url := fmt.Sprintf("https://127.0.0.1:%d%s", converter.port, webhook.Path)
	convert := func(name, url string) {
		require.NoError(t, second.admin.Get(t.Context(), client.ObjectKey{Name: name}, &crd))
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig: &apiextensionsv1.WebhookClientConfig{
					URL: &url, CABundle: converter.authority.certificatePEM(),
				},
			},
		}
		require.NoError(t, second.admin.Update(t.Context(), &crd))
	}
	for _, name := range []string{managements, addOns} {
		convert(name, url)
	}
	r.becomesReady(t)
	hasEvent(t, managements, "ConversionServed", url)
	everyFieldIsKept(t, true)

	// One definition alone whose webhook nobody serves is noticed.
	for _, name := range []string{managements, addOns} {
		convert(name, "https://127.0.0.1:1/convert")
	}
	r.saysWhyNot(t, addOns+" is to be converted by the webhook at https://127.0.0.1:1/convert, which does not: ",
		"connection refused")
	hasEvent(t, addOns, "ConversionNotServed", "https://127.0.0.1:1/convert")
}

// TestAWebhookOfSomebodyElseThatServesIsLeftAlone runs our hub manager beside another one.
func TestAWebhookOfSomebodyElseThatServesIsLeftAlone(t *testing.T) {
	url := fmt.Sprintf("https://127.0.0.1:%d%s", converter.port, webhook.Path)
	conversion, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: converter.authority.certificatePEM()},
		},
	})
	require.NoError(t, err)
	install(t, shipped(t, converting(conversion)), createdBy(t.Context(), "registration-operator"))
	r := runHub(t, nil)
	r.becomesReady(t)
	assert.Equal(t, url, *conversionOf(t, managements).Webhook.ClientConfig.URL)
	everyFieldIsKept(t, true)
}

// TestWhoeverSetsTheConversionBackIsOverruled plays a tool that writes the definition as it has it, again and again.
// Shows: hub/conversion-restored
func TestWhoeverSetsTheConversionBackIsOverruled(t *testing.T) {
	install(t, shipped(t), createdBy(t.Context(), "kubectl-create"))
	r := runHub(t, nil)
	r.becomesReady(t)
	ours := conversionOf(t, managements)
	for range 3 {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: managements}}
		require.NoError(t, second.admin.Patch(t.Context(), crd, client.RawPatch(types.MergePatchType,
			[]byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)), client.FieldOwner("argocd-controller")))
		suite.Eventually(t, func() error {
			if have := conversionOf(t, managements); have.Strategy != apiextensionsv1.WebhookConverter {
				return fmt.Errorf("it is %v", have)
			}
			return nil
		})
		assert.Equal(t, ours, conversionOf(t, managements))
		r.becomesReady(t)
	}
	hasEvent(t, managements, "ConversionOverruled", "set by field manager argocd-controller", "leave spec.conversion out")
	everyFieldIsKept(t, true)
}

// TestADefinitionThatIsNewerStays keeps a field and a version that this hub manager does not know.
func TestADefinitionThatIsNewerStays(t *testing.T) {
	newer := func(u *unstructured.Unstructured) {
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		alpha, _ := versions[0].(map[string]any)
		_ = unstructured.SetNestedMap(alpha, map[string]any{"type": "string"},
			"schema", "openAPIV3Schema", "properties", "spec", "properties", "later")
		_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
	}
	// The owner is our own field manager, so that the API server would let us take it away.
	install(t, shipped(t, newer), appliedBy(t.Context(), "spokelet-hub"))
	r := runHub(t, nil)
	r.becomesReady(t)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, second.admin.Get(t.Context(), client.ObjectKey{Name: addOns}, &crd))
	assert.Contains(t, crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "later")
	hasEvent(t, addOns, "DefinitionIsNewer", "v1alpha1.spec.later")

	// What is in that field neither fails a list nor is lost by the user who writes the other version.
	stored := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"later": "kept"}}}
	stored.SetAPIVersion(addonv1alpha1.GroupVersion.String())
	stored.SetKind("ManagedClusterAddOn")
	stored.SetNamespace("default")
	stored.SetName("newer")
	require.NoError(t, second.admin.Create(t.Context(), stored))
	var list addonv1beta1.ManagedClusterAddOnList
	require.NoError(t, second.admin.List(t.Context(), &list))
	require.Len(t, list.Items, 1)
	list.Items[0].Labels = map[string]string{"written": "in-v1beta1"}
	require.NoError(t, second.admin.Update(t.Context(), &list.Items[0]))
	require.NoError(t, second.admin.Get(t.Context(), client.ObjectKeyFromObject(stored), stored))
	later, _, err := unstructured.NestedString(stored.Object, "spec", "later")
	require.NoError(t, err)
	assert.Equal(t, "kept", later)
	assert.Equal(t, "in-v1beta1", stored.GetLabels()["written"])
	assert.NotContains(t, stored.GetAnnotations(), names.AnnotationCarried)
	assert.Equal(t, apiextensionsv1.WebhookConverter, crd.Spec.Conversion.Strategy)
}

// TestADefinitionOfTemplatesInOneVersionIsLeftToWhoKeepsIt has nothing to complain about: the other version has no
// other fields.
func TestADefinitionOfTemplatesInOneVersionIsLeftToWhoKeepsIt(t *testing.T) {
	install(t, shipped(t, alphaTemplates), appliedBy(t.Context(), "registration-operator"))
	r := runHub(t, nil)
	r.becomesReady(t)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, second.admin.Get(t.Context(), client.ObjectKey{Name: templates}, &crd))
	assert.Len(t, crd.Spec.Versions, 1)
	var events corev1.EventList
	require.NoError(t, second.admin.List(t.Context(), &events, client.InNamespace("default")))
	for _, event := range events.Items {
		assert.NotEqual(t, crd.UID, event.InvolvedObject.UID, event.Message)
	}

	r.stop()

	// That of an earlier hub manager gets the second version from an administrator.
	install(t, shipped(t, alphaTemplates), appliedBy(t.Context(), "spokelet-hub"))
	runHub(t, nil).becomesReady(t)
	hasEvent(t, templates, "DefinitionIsOlder", "spokelet-hub --print-crds")
	for _, u := range shipped(t) {
		require.NoError(t, appliedBy(t.Context(), "kubectl", client.ForceOwnership)(u))
	}
	everyFieldIsKept(t, true)
}

// TestADefinitionThatSomebodyElseKeepsIsConvertedAllTheSame has a schema that lacks something of ours.
func TestADefinitionThatSomebodyElseKeepsIsConvertedAllTheSame(t *testing.T) {
	older := func(u *unstructured.Unstructured) {
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		alpha, _ := versions[0].(map[string]any)
		delete(alpha, "additionalPrinterColumns")
		_ = unstructured.SetNestedSlice(u.Object, versions, "spec", "versions")
	}
	install(t, shipped(t, older), appliedBy(t.Context(), "kubectl"))
	r := runHub(t, nil)
	r.becomesReady(t)
	hasEvent(t, addOns, "DefinitionKeptByOthers", `"kubectl"`, "spec.versions")
	everyFieldIsKept(t, true)
}

// TestAGivenCertificateReplacesTheOwnOne gives a certificate to a hub manager that made one for want of it: it serves
// with that, and tells the API server whom to trust now.
func TestAGivenCertificateReplacesTheOwnOne(t *testing.T) {
	removeDefinitions(t)
	given, err := newAuthority()
	require.NoError(t, err)
	dir := t.TempDir()
	r := runHub(t, func(c *hub.Config) { c.WebhookCertDir, c.WebhookCAFile = dir, filepath.Join(dir, "ca.crt") })
	r.becomesReady(t)
	var secret corev1.Secret
	require.NoError(t, second.admin.Get(t.Context(),
		client.ObjectKey{Namespace: names.NamespaceHub, Name: names.SecretWebhook}, &secret))
	assert.Equal(t, secret.Data["ca.crt"], conversionOf(t, addOns).Webhook.ClientConfig.CABundle)

	certificate, key, err := given.issue(1)
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"ca.crt": given.certificatePEM(), "tls.crt": certificate, "tls.key": key,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	suite.Eventually(t, func() error {
		for _, name := range []string{addOns, managements} {
			if !bytes.Equal(conversionOf(t, name).Webhook.ClientConfig.CABundle, given.certificatePEM()) {
				return errors.New(name + " trusts the former authority")
			}
		}
		return nil
	})
	r.becomesReady(t)
	everyFieldIsKept(t, true)
}

// TestTheHubReadsTemplatesInWhateverVersionItServes has the hub manager hash a template: the hash is the same in both
// versions, whichever is stored, and also where the older one is gone.
func TestTheHubReadsTemplatesInWhateverVersionItServes(t *testing.T) {
	onlyBeta := func(u *unstructured.Unstructured) {
		if u.GetName() == templates {
			versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
			_ = unstructured.SetNestedSlice(u.Object, versions[1:], "spec", "versions")
		}
	}
	for sentence, edits := range map[string][]func(*unstructured.Unstructured){
		"v1alpha1 is stored":      {bothTemplates("v1alpha1"), converting(ofOCM())},
		"v1beta1 is stored":       {bothTemplates("v1beta1"), converting(ofOCM())},
		"v1alpha1 is gone":        {bothTemplates("v1beta1"), onlyBeta},
		"renaming is good enough": {bothTemplates("v1beta1")},
	} {
		t.Run(sentence, func(t *testing.T) {
			removeDefinitions(t)
			for _, u := range shipped(t, edits...) {
				require.NoError(t, second.admin.Create(t.Context(), u, client.FieldOwner("kubectl-create")))
			}
			r := runHub(t, nil)
			r.becomesReady(t)
			template := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"addonName": "hashed",
				"agentSpec": map[string]any{"workload": map[string]any{"manifests": []any{}}},
			}}}
			template.SetAPIVersion(addonv1beta1.GroupVersion.String())
			template.SetKind("AddOnTemplate")
			template.SetName("hashed")
			require.NoError(t, second.admin.Create(t.Context(), template))
			want, err := confighash.SpecHash(template)
			require.NoError(t, err)
			management := &addonv1beta1.ClusterManagementAddOn{
				ObjectMeta: metav1.ObjectMeta{Name: "hashed"},
				Spec: addonv1beta1.ClusterManagementAddOnSpec{
					InstallStrategy: addonv1beta1.InstallStrategy{Type: addonv1beta1.AddonInstallStrategyManual},
					DefaultConfigs: []addonv1beta1.AddOnConfig{{
						ConfigGroupResource: confighash.Template(), ConfigReferent: addonv1beta1.ConfigReferent{Name: "hashed"},
					}},
				},
			}
			require.NoError(t, second.admin.Create(t.Context(), management))
			suite.Eventually(t, func() error {
				if err := second.admin.Get(t.Context(), client.ObjectKeyFromObject(management), management); err != nil {
					return err
				}
				references := management.Status.DefaultConfigReferences
				if len(references) != 1 || references[0].DesiredConfig == nil || references[0].DesiredConfig.SpecHash != want {
					return fmt.Errorf("the status is %+v", management.Status)
				}
				return nil
			})
		})
	}
}
