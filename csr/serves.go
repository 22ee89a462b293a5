package csr

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/names"
)

// Use is what the CA in a Secret is to be used for.
type Use struct {
	// Signer is the custom signer, and Addon the add-on whose definition names the Secret.
	Signer, Addon string
	// Home is the namespace of the hub manager. What stands there was put there for add-ons.
	Home string
	// Rivals are other definitions that name the same Secret for another add-on or another signer, in words.
	Rivals []string
}

// CheckServes says why the CA in a Secret must not be used, in words for the author of the add-on; nil when it may. The
// Secret says by annotations which signers and add-ons it serves. One that says nothing serves where it stands in the
// namespace of the hub manager, and elsewhere only while no other definition names it: an author must not come by the
// CA of another add-on by naming it.
func CheckServes(secret *corev1.Secret, use Use) error {
	where := secret.Namespace + "/" + secret.Name
	annotate := func(key, value string) string {
		return fmt.Sprintf("kubectl annotate secret -n %s %s %s=%s", secret.Namespace, secret.Name, key, value)
	}
	signers, named := secret.Annotations[names.AnnotationSigners]
	switch {
	case named && !slices.Contains(listed(signers), use.Signer):
		return fmt.Errorf("CA Secret %s serves the signers %s, and not %s: whoever owns it can change that by: %s", where,
			quote(signers), quote(use.Signer), annotate(names.AnnotationSigners, "SIGNER,..."))
	case !named && use.Home != secret.Namespace && len(use.Rivals) > 0:
		return fmt.Errorf("CA Secret %s does not say whom it serves, and is named by %s, too: whoever owns it can say so "+
			"by: %s", where, quote(strings.Join(use.Rivals, ", ")), annotate(names.AnnotationSigners, "SIGNER,..."))
	}
	addons, named := secret.Annotations[names.AnnotationSignerAddons]
	if named && !slices.Contains(listed(addons), use.Addon) {
		return fmt.Errorf("CA Secret %s serves the add-ons %s, and not %s: whoever owns it can change that by: %s", where,
			quote(addons), quote(use.Addon), annotate(names.AnnotationSignerAddons, "ADDON,..."))
	}
	return nil
}

// listed splits the value of an annotation at its commas.
func listed(value string) []string {
	parts := strings.Split(value, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
