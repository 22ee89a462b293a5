package definition

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/spokelet/spokelet/internal/message"
)

// maxNote is how many bytes the note of an Event has at most (API reference, Event v1).
const maxNote = 1024

// recordProblem records an Event when a problem appears, changes or goes away.
func (k *Keeper) recordProblem(crd *apiextensionsv1.CustomResourceDefinition, verdict Verdict) {
	if crd == nil || !k.leads() {
		return
	}
	s := k.states[crd.Name]
	switch {
	case verdict.Problem == s.reported:
		return
	case verdict.Problem != "":
		k.event(Finding{
			Definition: crd, Type: corev1.EventTypeWarning, Reason: "ConversionNotServed", Message: verdict.Problem,
		})
	default:
		k.event(Finding{
			Definition: crd, Type: corev1.EventTypeNormal, Reason: "ConversionServed",
			Message: "requests in every version are answered: " + Describe(crd.Spec.Conversion) + " converts",
		})
	}
	s.reported = verdict.Problem
}

// leads reports whether this process is the leader.
func (k *Keeper) leads() bool {
	select {
	case <-k.Elected:
		return true
	default:
		return false
	}
}

// event records an Event about a definition. Events about cluster-scoped objects are in namespace default.
func (k *Keeper) event(f Finding) {
	if k.leads() {
		about := f.Definition.DeepCopy()
		about.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		k.Recorder.Eventf(about, nil, f.Type, f.Reason, "Convert", "%s", message.Cut(f.Message, maxNote))
	}
}
