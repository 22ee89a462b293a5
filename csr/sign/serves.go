package sign

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/spokelet/spokelet/internal/message"
	"github.com/spokelet/spokelet/internal/names"
)

// Use is the intended use of the CA in a Secret.
type Use struct {
	// Signer is the custom signer, and Addon the add-on whose definition names the Secret.
	Signer, Addon string
	// Home is the namespace of the hub manager. Secrets there were created for add-ons.
	Home string
	// Rivals describe other definitions that name the same Secret for another add-on or another signer.
	Rivals []string
	// Unmarked lets a Secret elsewhere serve without an annotation, as in OCM, while it has no rivals.
	Unmarked bool
}

// CheckServes returns an error for the author of the add-on if the CA in a Secret must not be used. Annotations of the
// Secret list the signers and add-ons that it serves. A Secret elsewhere than in the namespace of the hub manager
// serves only add-ons that it lists: an author must not get a CA by naming its Secret, and chooses the name of a
// signer.
func CheckServes(secret *corev1.Secret, use Use) error {
	where := secret.Namespace + "/" + secret.Name
	annotate := func(key, value string) string {
		return fmt.Sprintf("kubectl annotate secret -n %s %s %s=%s", secret.Namespace, secret.Name, key, value)
	}
	signers, named := secret.Annotations[names.AnnotationSigners]
	switch {
	case named && !slices.Contains(listed(signers), use.Signer):
		return fmt.Errorf("CA Secret %s serves the signers %s, and not %s: its owner can change that by: %s", where,
			message.Quote(signers), message.Quote(use.Signer), annotate(names.AnnotationSigners, "SIGNER,..."))
	case !named && use.Unmarked && use.Home != secret.Namespace && len(use.Rivals) > 0:
		return fmt.Errorf("CA Secret %s does not say whom it serves, and is named by %s, too: its owner can say so "+
			"by: %s", where, message.Quote(strings.Join(use.Rivals, ", ")), annotate(names.AnnotationSigners, "SIGNER,..."))
	}
	addons, named := secret.Annotations[names.AnnotationSignerAddons]
	if !named && use.Home != secret.Namespace && !use.Unmarked {
		return fmt.Errorf("CA Secret %s does not say which add-ons it serves, and is not in namespace %s: its owner "+
			"can say so by: %s %s=%s", where, use.Home, annotate(names.AnnotationSignerAddons, use.Addon),
			names.AnnotationSigners, use.Signer)
	}
	if named && !slices.Contains(listed(addons), use.Addon) {
		return fmt.Errorf("CA Secret %s serves the add-ons %s, and not %s: its owner can change that by: %s", where,
			message.Quote(addons), message.Quote(use.Addon), annotate(names.AnnotationSignerAddons, "ADDON,..."))
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
