package apierror

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The texts of real API servers are compared in test/integration/hubcluster; here is what they are not taken for.
func TestErrorsThatOnlyLookAlikeAreToldApart(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, "r", errors.New(text))
	}
	impersonates := forbidden(`User "agent" cannot impersonate resource "serviceaccounts" in API group ""`)
	constrained := forbidden(`User "agent" cannot impersonate-on:serviceaccount:create resource "roles" in API group ""`)
	lacks := forbidden(`User "deployer" cannot create resource "roles"`)
	quota := forbidden("exceeded quota: q")
	policy := forbidden("ValidatingAdmissionPolicy 'a.spokelet.io' with binding 'a' denied request: no")
	for sentence, c := range map[string]struct{ have, want bool }{
		"an impersonation that is refused":       {CannotImpersonate(impersonates), true},
		"one that is constrained":                {CannotImpersonate(constrained), true},
		"another right is no impersonation":      {CannotImpersonate(lacks), false},
		"the text alone is no refusal":           {CannotImpersonate(errors.New("cannot impersonate resource")), false},
		"no error is no impersonation":           {CannotImpersonate(nil), false},
		"a right is lacking":                     {LacksRight(lacks), true},
		"a quota is not a right":                 {LacksRight(quota), false},
		"a policy is not a right":                {LacksRight(policy), false},
		"a policy":                               {ByPolicy(policy, ""), true},
		"a policy by its name":                   {ByPolicy(policy, "a.spokelet.io"), true},
		"another policy":                         {ByPolicy(policy, "b.spokelet.io"), false},
		"a right is no policy":                   {ByPolicy(lacks, ""), false},
		"no error is no field that is immutable": {ImmutableField(nil), false},
		"no error is no conversion":              {NotConverted(nil), false},
	} {
		assert.Equal(t, c.want, c.have, sentence)
	}
}
