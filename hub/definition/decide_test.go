package definition

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func at(url string) *apiextensionsv1.WebhookClientConfig {
	return &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: []byte("ca")}
}

func service(name string, port *int32) *apiextensionsv1.WebhookClientConfig {
	return &apiextensionsv1.WebhookClientConfig{
		Service: &apiextensionsv1.ServiceReference{Namespace: "ns", Name: name, Port: port},
	}
}

func TestDecide(t *testing.T) {
	two := []string{"v1alpha1", "v1beta1"}
	none := &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	ours, theirs := at("https://ours"), Conversion(*at("https://theirs"))
	newCA := ours.DeepCopy()
	newCA.CABundle = []byte("new")
	no := Probe{Answer: NotConverted, Message: "connection refused"}
	for sentence, tc := range map[string]struct {
		facts Facts
		// says is in the problem; empty means that there is none.
		says     string
		announce bool
		recheck  bool
	}{
		"a definition that is not there is a problem": {says: "x does not exist"},
		"one version needs no conversion":             {facts: Facts{Served: two[:1], Conversion: none}},
		"versions with the same fields may be renamed": {
			facts: Facts{Served: two, Conversion: none, Kind: Kind{SameFields: true}, Ours: ours, Write: true},
		},
		"renaming is replaced by our webhook, even before it answers": {
			facts:    Facts{Served: two, Conversion: none, Ours: ours, Write: true, Silent: "not started"},
			announce: true, says: "renaming the version, which drops the fields that differ",
		},
		"renaming stays where nobody said where our webhook is": {
			facts: Facts{Served: two, Conversion: none, Write: true}, says: "--webhook-service or --webhook-url",
		},
		"renaming stays where definitions are not ours to change": {
			facts: Facts{Served: two, Ours: ours}, says: "start the hub manager with --install-crds, or have",
		},
		"our webhook converts": {
			facts: Facts{Served: two, Conversion: Conversion(*ours), Ours: ours, Probe: Probe{Answer: Converted}},
		},
		"a port that the API server filled in is no difference": {
			facts: Facts{
				Served: two, Conversion: Conversion(*service("s", new(int32(443)))), Ours: service("s", nil), Write: true,
				Probe: Probe{Answer: Converted},
			},
		},
		"our webhook that does not answer is a problem": {
			facts: Facts{Served: two, Conversion: Conversion(*ours), Ours: ours, Silent: "not started"},
			says:  "by the webhook of this hub manager, which does not answer: not started",
		},
		"our webhook that the API server does not reach is a problem": {
			facts: Facts{Served: two, Conversion: Conversion(*ours), Ours: ours, Probe: no},
			says:  "which the API server does not reach: connection refused", recheck: true,
		},
		"a Service that waits for our readiness is none": {
			facts: Facts{Served: two, Conversion: Conversion(*ours), Ours: ours, Probe: Probe{
				Answer: NotConverted, Message: `no endpoints available for service "s"`,
			}},
			recheck: true,
		},
		"our webhook with an authority that is no longer served is announced again": {
			facts: Facts{Served: two, Conversion: Conversion(*ours), Ours: newCA, Write: true, Probe: no},
			says:  "is ours, but not as it is served", announce: true,
		},
		"the same while the former authority is still good": {
			facts:    Facts{Served: two, Conversion: Conversion(*ours), Ours: newCA, Write: true, Probe: Probe{Answer: Converted}},
			announce: true,
		},
		"a webhook of somebody else that serves is left alone": {
			facts:   Facts{Served: two, Conversion: theirs, Ours: ours, Write: true, Probe: Probe{Answer: Converted}},
			recheck: true,
		},
		"a webhook of somebody else that does not serve is replaced": {
			facts: Facts{Served: two, Conversion: theirs, Ours: ours, Write: true, Probe: no},
			says:  "the webhook at https://theirs, which does not: connection refused", announce: true, recheck: true,
		},
		"but not before ours answers": {
			facts: Facts{Served: two, Conversion: theirs, Ours: ours, Write: true, Probe: no, Silent: "not started"},
			says:  "as soon as that answers; now not started", recheck: true,
		},
		"nor where definitions are not ours to change": {
			facts: Facts{Served: two, Conversion: theirs, Ours: ours, Probe: no}, says: "--install-crds", recheck: true,
		},
		"a webhook of somebody else of which nothing is known is a problem, and stays": {
			facts: Facts{Served: two, Conversion: theirs, Ours: ours, Write: true, Probe: Probe{Message: "forbidden"}},
			says:  "it is not known whether the webhook at https://theirs converts x: forbidden", recheck: true,
		},
		"unless ours converts the other kind already": {
			facts: Facts{Served: two, Conversion: theirs, Ours: ours, Write: true, Sibling: true},
			says:  "it is not known", announce: true, recheck: true,
		},
		"templates through a webhook that does not serve are converted by ours": {
			facts: Facts{
				Served: two, Conversion: theirs, Ours: ours, Write: true, Probe: no, Kind: Kind{SameFields: true},
			},
			says: "which does not", announce: true, recheck: true,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			tc.facts.Kind.Name = "x"
			got := Decide(tc.facts)
			assert.Equal(t, tc.announce, got.Announce)
			assert.Equal(t, tc.recheck, got.Recheck)
			assert.Contains(t, got.Problem, tc.says)
			if tc.says == "" {
				assert.Empty(t, got.Problem)
			}
		})
	}
}

func TestSetterIsWhoeverWroteTheConversionLast(t *testing.T) {
	entry := func(manager string, second int64, fields string) metav1.ManagedFieldsEntry {
		at := metav1.Unix(second, 0)
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	conversion := `{"f:spec":{"f:conversion":{"f:strategy":{}}}}`
	fields := []metav1.ManagedFieldsEntry{
		entry("us", 9, conversion), entry("helm", 2, conversion), entry("argocd", 5, conversion),
		entry("kubectl", 7, `{"f:spec":{"f:group":{}}}`), entry("broken", 8, `{`), {Manager: "empty"},
	}
	assert.Equal(t, "argocd", Setter(fields, "us"))
	assert.Empty(t, Setter(fields[3:], "us"))
	assert.True(t, owns(fields, "helm"))
	assert.False(t, owns(fields, "kubectl"))
}

func TestPausesGrowAndEnd(t *testing.T) {
	assert.Equal(t, time.Duration(0), Pause(0), "the first time at once")
	assert.Equal(t, firstPause, Pause(1))
	last := firstPause
	for times := 2; times < 100; times++ {
		now := Pause(times)
		assert.GreaterOrEqual(t, now, last)
		last = now
	}
	assert.Equal(t, longestPause, last)
}

func TestBeyond(t *testing.T) {
	type props = map[string]apiextensionsv1.JSONSchemaProps
	crd := func(versions ...apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Versions: versions},
		}
	}
	version := func(name string, stored bool, fields props) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Storage: stored, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Properties: fields},
			},
		}
	}
	list := func(fields props) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Items: &apiextensionsv1.JSONSchemaPropsOrArray{
			Schema: &apiextensionsv1.JSONSchemaProps{Properties: fields},
		}}
	}
	a, ab := props{"a": {}}, props{"a": {}, "b": {}}
	for sentence, tc := range map[string]struct {
		have, ours *apiextensionsv1.CustomResourceDefinition
		want       []string
	}{
		"the same":         {crd(version("v1", true, ab)), crd(version("v1", true, ab)), nil},
		"an older one":     {crd(version("v1", true, a)), crd(version("v1", true, ab), version("v2", false, a)), nil},
		"one field more":   {crd(version("v1", true, ab)), crd(version("v1", true, a)), []string{"v1.b"}},
		"one version more": {crd(version("v1", true, a), version("v2", false, a)), crd(version("v1", true, a)), []string{"version v2"}},
		"another version stored": {
			crd(version("v1", false, a), version("v2", true, a)), crd(version("v1", true, a), version("v2", false, a)),
			[]string{"version v2 as the stored one"},
		},
		"one field more in a list": {
			crd(version("v1", true, props{"l": list(ab)})), crd(version("v1", true, props{"l": list(a)})), []string{"v1.l[].b"},
		},
		"a field where ours takes any": {
			crd(version("v1", true, props{"o": {Properties: ab}})),
			crd(version("v1", true, props{"o": {XPreserveUnknownFields: new(true)}})), nil,
		},
	} {
		t.Run(sentence, func(t *testing.T) { assert.Equal(t, tc.want, Beyond(tc.have, tc.ours)) })
	}
	both := crd(version("v1", true, a), version("v2", false, a))
	assert.True(t, LacksVersionsOnly(crd(version("v1", true, a)), both), "one version less")
	assert.False(t, LacksVersionsOnly(both, both), "the same")
	assert.False(t, LacksVersionsOnly(crd(version("v1", true, ab)), both), "other fields")
	assert.False(t, LacksVersionsOnly(crd(version("v2", true, a)), both), "another version stored")
}
