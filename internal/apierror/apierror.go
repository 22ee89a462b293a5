package apierror

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// CannotImpersonate reports whether a request was refused because the client may not act as another user, which says
// nothing about that user.
func CannotImpersonate(err error) bool {
	// Where impersonation is constrained, since Kubernetes 1.37, it is "cannot impersonate-on:serviceaccount:create".
	return apierrors.IsForbidden(err) && has(err, " cannot impersonate")
}

// LacksRight reports whether RBAC refused a request: the client lacks a right. A quota, an admission policy or a
// namespace that is being deleted refuses with the same code.
func LacksRight(err error) bool { return apierrors.IsForbidden(err) && has(err, " cannot ") }

// ByPolicy reports whether a ValidatingAdmissionPolicy refused a request, and with a text whether it is one whose
// name or message has that text.
func ByPolicy(err error, text string) bool {
	return has(err, "ValidatingAdmissionPolicy") && has(err, text)
}

// ImmutableField reports whether an update was refused because a field cannot be changed in place.
func ImmutableField(err error) bool { return has(err, "field is immutable") }

// NotConverted reports whether a request failed because a conversion webhook did.
func NotConverted(err error) bool { return has(err, "conversion webhook for") }

// has reports whether the text of an error contains a part.
func has(err error, part string) bool { return err != nil && strings.Contains(err.Error(), part) }
