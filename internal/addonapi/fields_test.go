package addonapi_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/internal/addonapi"
)

// filled returns an object with a different value in every field that its type has: every pointer is set, every list
// has two elements, every map one.
func filled[T any]() *T {
	out, n := new(T), 0
	fillEach(reflect.ValueOf(out).Elem(), &n)
	return out
}

func fillEach(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(int64(*n)*1000, 0).UTC())))
		return
	case intstr.IntOrString:
		v.Set(reflect.ValueOf(intstr.FromInt(*n)))
		return
	case metav1.ObjectMeta, metav1.TypeMeta:
		return // both versions have the same
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fillEach(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillEach(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillEach(v.Index(i), n)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillEach(key, n)
		fillEach(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("s" + strconv.Itoa(*n))
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	default:
		panic("fill: " + v.Type().String())
	}
}

// leaves returns the paths of all values of an object by the value. Indexes are left out, so that elements of a list
// are one path.
func leaves(t *testing.T, object any) map[string][]string {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	found := map[string][]string{}
	var walk func(value any, path string)
	walk = func(value any, path string) {
		switch typed := value.(type) {
		case map[string]any:
			for name, element := range typed {
				if path == "" && (name == "apiVersion" || name == "kind") {
					continue
				}
				walk(element, strings.TrimPrefix(path+"."+name, "."))
			}
		case []any:
			for _, element := range typed {
				walk(element, path+"[]")
			}
		case nil:
		default:
			found[fmt.Sprint(typed)] = append(found[fmt.Sprint(typed)], path)
		}
	}
	walk(fields, "")
	return found
}

// checkFields compares where each field of one version is in the other with the table. A field of the same path in both
// versions is left out of the table; one with the path "" is lost.
func checkFields(t *testing.T, from, to any, table map[string]string) {
	t.Helper()
	before, after, got := leaves(t, from), leaves(t, to), map[string][]string{}
	for value, paths := range before {
		require.Len(t, paths, 1, "the value %s is not unique", value)
		slices.Sort(after[value])
		there := strings.Join(after[value], " and ")
		if !slices.Contains(got[paths[0]], there) {
			got[paths[0]] = append(got[paths[0]], there)
		}
	}
	require.Greater(t, len(got), 10)
	for _, path := range slices.Sorted(maps.Keys(got)) {
		want, listed := table[path]
		if !listed {
			want = path
		}
		wants := strings.Split(want, " or ")
		assert.ElementsMatch(t, wants, got[path], "%s: list the field in the table, and convert it", path)
	}
	for path := range table {
		assert.Contains(t, got, path, "the table has a field that the type does not have")
	}
}

const (
	lost         = ""
	references   = "status.configReferences[]."
	registration = "status.registrations[]."
	custom       = registration + "customSigner."

	alphaDefaults = "status.defaultconfigReferences[]."
	betaDefaults  = "status.defaultConfigReferences[]."
)

// TestEveryFieldHasItsPlaceInTheOtherVersion walks the types, so that a field of a newer API module fails the test
// until it is converted.
//
// Shows: hub/every-field
func TestEveryFieldHasItsPlaceInTheOtherVersion(t *testing.T) {
	t.Run("ManagedClusterAddOn to v1beta1", func(t *testing.T) {
		in := filled[addonv1alpha1.ManagedClusterAddOn]()
		in.Status.Registrations[0].SignerName = kubeSigner
		out := addonapi.AddOnToBeta(in)
		checkFields(t, in, out, map[string]string{
			"spec.installNamespace":                            "metadata.annotations." + installKey,
			"status.addOnConfiguration.crdName":                lost,
			"status.addOnConfiguration.crName":                 lost,
			"status.addOnConfiguration.lastObservedGeneration": lost,
			references + "namespace":                           lost, // desiredConfig has them
			references + "name":                                lost,
			"status.kubeClientDriver":                          registration + "kubeClient.driver",
			registration + "signerName":                        lost + " or " + custom + "signerName",
			registration + "subject.user":                      subjects("user"),
			registration + "subject.groups[]":                  subjects("groups[]"),
			registration + "subject.organizationUnit[]":        lost + " or " + custom + "subject.organizationUnits[]",
		})
		same(t, in.Spec, addonapi.AddOnToAlpha(out).Spec)
	})
	t.Run("ManagedClusterAddOn to v1alpha1", func(t *testing.T) {
		in := filled[addonv1beta1.ManagedClusterAddOn]()
		in.Status.Registrations[0].Type, in.Status.Registrations[0].CustomSigner = addonv1beta1.KubeClient, nil
		in.Status.Registrations[1].Type, in.Status.Registrations[1].KubeClient = addonv1beta1.CustomSigner, nil
		out := addonapi.AddOnToAlpha(in)
		checkFields(t, in, out, map[string]string{
			references + "desiredConfig.namespace":       references + "desiredConfig.namespace and " + references + "namespace",
			references + "desiredConfig.name":            references + "desiredConfig.name and " + references + "name",
			registration + "type":                        lost, // the signer is another
			registration + "kubeClient.driver":           "status.kubeClientDriver",
			registration + "kubeClient.subject.user":     registration + "subject.user",
			registration + "kubeClient.subject.groups[]": registration + "subject.groups[]",
			custom + "signerName":                        registration + "signerName",
			custom + "subject.user":                      registration + "subject.user",
			custom + "subject.groups[]":                  registration + "subject.groups[]",
			custom + "subject.organizationUnits[]":       registration + "subject.organizationUnit[]",
		})
		same(t, in.Status, addonapi.AddOnToBeta(out).Status)
	})
	t.Run("ClusterManagementAddOn to v1beta1", func(t *testing.T) {
		in := filled[addonv1alpha1.ClusterManagementAddOn]()
		out := addonapi.ClusterManagementAddOnToBeta(in)
		checkFields(t, in, out, map[string]string{
			"spec.addOnConfiguration.crdName":                 lost, // an annotation carries all three
			"spec.addOnConfiguration.crName":                  lost,
			"spec.addOnConfiguration.lastObservedGeneration":  lost,
			"spec.supportedConfigs[].group":                   "spec.defaultConfigs[].group",
			"spec.supportedConfigs[].resource":                "spec.defaultConfigs[].resource",
			"spec.supportedConfigs[].defaultConfig.namespace": "spec.defaultConfigs[].namespace",
			"spec.supportedConfigs[].defaultConfig.name":      "spec.defaultConfigs[].name",
			alphaDefaults + "group":                           betaDefaults + "group",
			alphaDefaults + "resource":                        betaDefaults + "resource",
			alphaDefaults + "desiredConfig.namespace":         betaDefaults + "desiredConfig.namespace",
			alphaDefaults + "desiredConfig.name":              betaDefaults + "desiredConfig.name",
			alphaDefaults + "desiredConfig.specHash":          betaDefaults + "desiredConfig.specHash",
		})
		same(t, in.Spec, addonapi.ClusterManagementAddOnToAlpha(out).Spec)
		same(t, in.Status, addonapi.ClusterManagementAddOnToAlpha(out).Status)
	})
	t.Run("ClusterManagementAddOn to v1alpha1", func(t *testing.T) {
		in := filled[addonv1beta1.ClusterManagementAddOn]()
		out := addonapi.ClusterManagementAddOnToAlpha(in)
		checkFields(t, in, out, map[string]string{
			"spec.defaultConfigs[].group":            "spec.supportedConfigs[].group",
			"spec.defaultConfigs[].resource":         "spec.supportedConfigs[].resource",
			"spec.defaultConfigs[].namespace":        "spec.supportedConfigs[].defaultConfig.namespace",
			"spec.defaultConfigs[].name":             "spec.supportedConfigs[].defaultConfig.name",
			betaDefaults + "group":                   alphaDefaults + "group",
			betaDefaults + "resource":                alphaDefaults + "resource",
			betaDefaults + "desiredConfig.namespace": alphaDefaults + "desiredConfig.namespace",
			betaDefaults + "desiredConfig.name":      alphaDefaults + "desiredConfig.name",
			betaDefaults + "desiredConfig.specHash":  alphaDefaults + "desiredConfig.specHash",
		})
		same(t, in.Spec, addonapi.ClusterManagementAddOnToBeta(out).Spec)
		same(t, in.Status, addonapi.ClusterManagementAddOnToBeta(out).Status)
	})
}

// subjects returns the places of a field of the subject of a registration in v1beta1.
func subjects(name string) string {
	return registration + "kubeClient.subject." + name + " or " + custom + "subject." + name
}
