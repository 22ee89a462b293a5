package token

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Condition types, reasons and messages of the protocol (docs/reference/registration.md, "Tokens").
const (
	// ConditionInfrastructure is the condition by which the hub reports that the ServiceAccount exists.
	ConditionInfrastructure = "TokenInfrastructureReady"
	// ReasonReady is its reason while the ServiceAccount is there.
	ReasonReady = "TokenInfrastructureReady"
	// ReasonApplyFailed is its reason while the ServiceAccount could not be made.
	ReasonApplyFailed = "TokenInfrastructureApplyFailed"

	// ConditionRefreshed is the condition by which the agent reports the state of its token.
	ConditionRefreshed = "TokenRefreshed"
	// ReasonRefreshed is its reason while the token is good.
	ReasonRefreshed = "AddonTokenRefreshed"
	// ReasonCreationFailed is its reason while no token could be had.
	ReasonCreationFailed = "TokenCreationFailed"

	messageReady       = "ServiceAccount %s/%s (UID: %s) is ready"
	messageNotReady    = "Failed to apply token infrastructure: %s"
	messageRefreshed   = "Addon token refreshed, expires at %s"
	messageNotCreated  = "Failed to create token: %s"
	uidStart, uidStop  = "(UID: ", ")"
	maxUID             = 128
	uidCharacters      = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	separatorNamespace = "/"
)

// Ready returns the condition of the hub for a ServiceAccount that is there.
func Ready(cluster, addon string, uid types.UID) *metav1.Condition {
	return &metav1.Condition{
		Type: ConditionInfrastructure, Status: metav1.ConditionTrue, Reason: ReasonReady,
		Message: fmt.Sprintf(messageReady, cluster, ServiceAccountName(addon), uid),
	}
}

// NotReady returns the condition of the hub for infrastructure that could not be made, why for people.
func NotReady(why string) *metav1.Condition {
	return &metav1.Condition{
		Type: ConditionInfrastructure, Status: metav1.ConditionFalse, Reason: ReasonApplyFailed,
		Message: fmt.Sprintf(messageNotReady, why),
	}
}

// ReadReady parses the UID of the ServiceAccount in the conditions of an add-on. ready is false as long as the hub does
// not report the ServiceAccount of this add-on, or if its message cannot be parsed.
func ReadReady(conditions []metav1.Condition, cluster, addon string) (uid types.UID, ready bool) {
	c := meta.FindStatusCondition(conditions, ConditionInfrastructure)
	if c == nil || c.Status != metav1.ConditionTrue {
		return "", false
	}
	before, rest, found := strings.Cut(c.Message, uidStart)
	if !found || !strings.Contains(before, cluster+separatorNamespace+ServiceAccountName(addon)+" ") {
		return "", false
	}
	id, _, found := strings.Cut(rest, uidStop)
	id = strings.TrimSpace(id)
	if !found || id == "" || len(id) > maxUID || strings.Trim(id, uidCharacters) != "" {
		return "", false
	}
	return types.UID(id), true
}

// Refreshed returns the condition of the agent for a good token.
func Refreshed(expires time.Time) *metav1.Condition {
	return &metav1.Condition{
		Type: ConditionRefreshed, Status: metav1.ConditionTrue, Reason: ReasonRefreshed,
		Message: fmt.Sprintf(messageRefreshed, expires.UTC().Format(time.RFC3339)),
	}
}

// CreationFailed returns the condition of the agent for a token that could not be had or stored, why for people.
func CreationFailed(why string) *metav1.Condition {
	return &metav1.Condition{
		Type: ConditionRefreshed, Status: metav1.ConditionFalse, Reason: ReasonCreationFailed,
		Message: fmt.Sprintf(messageNotCreated, why),
	}
}
