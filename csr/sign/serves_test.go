package sign

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/names"
)

func TestCheckServes(t *testing.T) {
	annotated := func(signers, addons string) map[string]string {
		all := map[string]string{}
		if signers != "" {
			all[names.AnnotationSigners] = signers
		}
		if addons != "" {
			all[names.AnnotationSignerAddons] = addons
		}
		return all
	}
	rivals := []string{"AddOnTemplate evil (signer example.com/evil)"}
	tests := map[string]struct {
		namespace   string
		annotations map[string]string
		rivals      []string
		unmarked    bool
		says        string
	}{
		"one that names signer and add-on serves":        {"ns", annotated("example.com/s", "a"), rivals, false, ""},
		"so does one that names several":                 {"ns", annotated("example.com/a, example.com/s", "b,a"), rivals, false, ""},
		"one that names the add-on serves any signer":    {"ns", annotated("", "a"), rivals, false, ""},
		"one that names the signer only does not":        {"ns", annotated("example.com/s", ""), nil, false, "does not say which add-ons it serves"},
		"one that names another signer does not":         {"ns", annotated("example.com/a", "a"), nil, false, "annotate secret -n ns ca addon.spokelet.io/signers="},
		"one that names none serves none":                {"ns", map[string]string{names.AnnotationSigners: ""}, nil, false, "serves the signers"},
		"a part of the name is not the name":             {"ns", annotated("example.com/s2", "a"), nil, false, "serves the signers"},
		"one that names another add-on does not":         {"ns", annotated("example.com/s", "b"), nil, false, "addon.spokelet.io/signer-addons"},
		"not in the namespace of the hub manager either": {"home", annotated("", "b"), nil, false, "serves the add-ons"},
		"one that says nothing does not": {"ns", nil, nil, false,
			"annotate secret -n ns ca addon.spokelet.io/signer-addons=a addon.spokelet.io/signers=example.com/s"},
		"as OCM, one that says nothing serves its only add-on":     {"ns", nil, nil, true, ""},
		"as OCM, one that names the signer serves":                 {"ns", annotated("example.com/s", ""), rivals, true, ""},
		"as OCM, it serves nobody when another names it, too":      {"ns", nil, rivals, true, "is named by \"AddOnTemplate evil"},
		"as OCM, what it says counts":                              {"ns", annotated("", "b"), nil, true, "serves the add-ons"},
		"in the namespace of the hub manager it serves":            {"home", nil, rivals, false, ""},
		"in the namespace of the hub manager, as OCM, it does too": {"home", nil, rivals, true, ""},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: tc.namespace, Name: "ca", Annotations: tc.annotations,
			}}
			err := CheckServes(secret, Use{
				Signer: "example.com/s", Addon: "a", Home: "home", Rivals: tc.rivals, Unmarked: tc.unmarked,
			})
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
}
