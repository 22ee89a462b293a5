package csr_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/csr"
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
		says        string
	}{
		"one that names the signer serves":               {"ns", annotated("example.com/s", ""), rivals, ""},
		"so does one that names several":                 {"ns", annotated("example.com/a, example.com/s", ""), rivals, ""},
		"one that names another signer does not":         {"ns", annotated("example.com/a", ""), nil, "annotate secret -n ns ca addon.spokelet.io/signers="},
		"one that names none serves none":                {"ns", map[string]string{names.AnnotationSigners: ""}, nil, "serves the signers"},
		"a part of the name is not the name":             {"ns", annotated("example.com/s2", ""), nil, "serves the signers"},
		"one that names the add-on serves":               {"ns", annotated("example.com/s", "b,a"), nil, ""},
		"one that names another add-on does not":         {"ns", annotated("example.com/s", "b"), nil, "addon.spokelet.io/signer-addons"},
		"not in the namespace of the hub manager either": {"home", annotated("", "b"), nil, "serves the add-ons"},
		"one that says nothing serves its only add-on":   {"ns", nil, nil, ""},
		"it serves nobody when another names it, too":    {"ns", nil, rivals, "is named by \"AddOnTemplate evil"},
		"in the namespace of the hub manager it serves":  {"home", nil, rivals, ""},
	}
	for sentence, tc := range tests {
		t.Run(sentence, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: tc.namespace, Name: "ca", Annotations: tc.annotations,
			}}
			err := csr.CheckServes(secret, csr.Use{
				Signer: "example.com/s", Addon: "a", Home: "home", Rivals: tc.rivals,
			})
			if tc.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.says)
		})
	}
}
