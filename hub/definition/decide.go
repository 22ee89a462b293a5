package definition

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spokelet/spokelet/internal/pause"
)

// Kind is a CustomResourceDefinition whose conversion is managed.
type Kind struct {
	// Name is the name of the definition.
	Name string
	// SameFields means that all versions have the same fields, so that conversion by renaming the version loses nothing.
	SameFields bool
}

// Answer is whether the webhook in spec.conversion converts.
type Answer int

const (
	// Unknown means that it was not probed, or that the probe failed for another reason.
	Unknown Answer = iota
	// Converted means that the API server converted an object.
	Converted
	// NotConverted means that it could not.
	NotConverted
)

// Probe is the result of a request that the API server has to convert.
type Probe struct {
	// Answer is whether it converted.
	Answer Answer
	// Message is the error of the API server.
	Message string
}

// Facts are the inputs of the decision about one definition.
type Facts struct {
	// Kind is the definition.
	Kind Kind
	// Served are the served versions; nil when the definition does not exist.
	Served []string
	// Conversion is its spec.conversion.
	Conversion *apiextensionsv1.CustomResourceConversion
	// Ours is the address of our webhook; nil when it has none.
	Ours *apiextensionsv1.WebhookClientConfig
	// Silent is why our webhook does not answer; empty when it does.
	Silent string
	// Write reports whether we may change the definition.
	Write bool
	// Sibling reports whether our webhook converts another definition of add-ons.
	Sibling bool
	// Probe is the result of the probe.
	Probe Probe
}

// Verdict is the decision about one definition.
type Verdict struct {
	// Problem is why requests in another version than the stored one fail or lose fields; empty when they work.
	Problem string
	// Announce asks to set our webhook in spec.conversion.
	Announce bool
	// Recheck asks to check again after a while even without an event, because the webhook of another client converts.
	Recheck bool
}

// Decide judges the conversion of one definition.
func Decide(f Facts) Verdict {
	if f.Served == nil {
		return Verdict{Problem: f.Kind.Name + " does not exist: apply the definitions of the hub, or start the hub " +
			"manager with --install-crds"}
	}
	if len(f.Served) < 2 {
		return Verdict{}
	}
	client := webhookOf(f.Conversion)
	switch {
	case client == nil && f.Kind.SameFields:
		return Verdict{}
	case client == nil:
		return Verdict{Announce: f.Write && f.Ours != nil, Problem: fmt.Sprintf(
			"the API server converts %s between %s by renaming the version, which drops the fields that differ: %s",
			f.Kind.Name, strings.Join(f.Served, " and "), remedy(f))}
	case SameWebhook(f.Conversion, f.Ours):
		return ours(f)
	case f.Ours != nil && address(client) == address(f.Ours):
		// The address is ours, but the CA bundle is not the one of our present certificate.
		v := Verdict{Announce: f.Write, Recheck: !f.Write}
		if f.Probe.Answer != Converted {
			v.Problem = fmt.Sprintf("the webhook in the conversion of %s is ours, but not as it is served: %s",
				f.Kind.Name, remedy(f))
		}
		return v
	}
	return theirs(f, client)
}

// ours judges a definition with our webhook.
func ours(f Facts) Verdict {
	switch {
	case f.Silent != "":
		return Verdict{Problem: fmt.Sprintf("%s is to be converted by the webhook of this hub manager, which does not "+
			"answer: %s", f.Kind.Name, f.Silent)}
	case f.Probe.Answer == NotConverted && !strings.Contains(f.Probe.Message, noEndpoints):
		return Verdict{Recheck: true, Problem: fmt.Sprintf("%s is to be converted by the webhook of the hub manager at "+
			"%s, which the API server does not reach: %s", f.Kind.Name, address(f.Ours), f.Probe.Message)}
	}
	// A Service without publishNotReadyAddresses has no endpoints until we are ready: that must not keep us from becoming
	// ready.
	return Verdict{Recheck: f.Probe.Answer != Converted}
}

// noEndpoints is in the error of the API server when no pod behind a Service is ready.
const noEndpoints = "no endpoints available"

// theirs judges a definition with the webhook of another client.
func theirs(f Facts, client *apiextensionsv1.WebhookClientConfig) Verdict {
	switch f.Probe.Answer {
	case Converted:
		return Verdict{Recheck: true}
	case NotConverted:
		return Verdict{
			Recheck: true, Announce: f.Write && f.Ours != nil && f.Silent == "",
			Problem: fmt.Sprintf("%s is to be converted by the webhook at %s, which does not: %s; %s",
				f.Kind.Name, address(client), f.Probe.Message, remedy(f)),
		}
	case Unknown:
	}
	// No other webhook converts only some of the kinds of add-ons: this one was left when ours was set in the other
	// definition.
	return Verdict{Recheck: true, Announce: f.Sibling && f.Write && f.Silent == "", Problem: fmt.Sprintf(
		"it is not known whether the webhook at %s converts %s: %s", address(client), f.Kind.Name, f.Probe.Message)}
}

// remedy returns what happens about a problem, or what an administrator can do.
func remedy(f Facts) string {
	switch {
	case f.Ours == nil:
		return "set --webhook-service or --webhook-url of the hub manager, where the API server reaches its webhook"
	case !f.Write:
		return fmt.Sprintf("start the hub manager with --install-crds, or have spec.conversion name the webhook at %s",
			address(f.Ours))
	case f.Silent != "":
		return "the hub manager puts its own webhook there as soon as that answers; now " + f.Silent
	}
	return "the hub manager puts its own webhook there"
}

// Conversion returns the conversion by a webhook.
func Conversion(client apiextensionsv1.WebhookClientConfig) *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: client.DeepCopy(), ConversionReviewVersions: []string{"v1"},
		},
	}
}

// SameWebhook reports whether a conversion names exactly the webhook, API defaults included.
func SameWebhook(have *apiextensionsv1.CustomResourceConversion, want *apiextensionsv1.WebhookClientConfig) bool {
	client := webhookOf(have)
	return client != nil && want != nil && reflect.DeepEqual(complete(client), complete(want))
}

// complete returns a client configuration with the defaults of the API server.
func complete(client *apiextensionsv1.WebhookClientConfig) *apiextensionsv1.WebhookClientConfig {
	client = client.DeepCopy()
	if client.Service != nil && client.Service.Port == nil {
		client.Service.Port = new(int32(443))
	}
	return client
}

// webhookOf returns the webhook of a conversion; nil when the API server converts by renaming the version.
func webhookOf(c *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.WebhookClientConfig {
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil {
		return nil
	}
	return c.Webhook.ClientConfig
}

// address returns the URL or the Service of a webhook.
func address(client *apiextensionsv1.WebhookClientConfig) string {
	switch {
	case client.URL != nil:
		return *client.URL
	case client.Service != nil:
		return client.Service.Namespace + "/" + client.Service.Name
	}
	return "nowhere"
}

// Describe describes a conversion for messages.
func Describe(c *apiextensionsv1.CustomResourceConversion) string {
	if client := webhookOf(c); client != nil {
		return "the webhook at " + address(client)
	}
	return "None"
}

// Setter returns the field manager other than us that set the conversion of a definition last; empty when managedFields
// name none.
func Setter(fields []metav1.ManagedFieldsEntry, us ...string) string {
	var name string
	var last time.Time
	for _, entry := range fields {
		if slices.Contains(us, entry.Manager) || entry.FieldsV1 == nil || !ownsConversion(entry.FieldsV1.GetRawBytes()) {
			continue
		}
		at := time.Time{}
		if entry.Time != nil {
			at = entry.Time.Time
		}
		if name == "" || !at.Before(last) {
			name, last = entry.Manager, at
		}
	}
	return name
}

// owns reports whether a field manager owns a part of the conversion.
func owns(fields []metav1.ManagedFieldsEntry, manager string) bool {
	return slices.ContainsFunc(fields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.FieldsV1 != nil && ownsConversion(entry.FieldsV1.GetRawBytes())
	})
}

// ownsConversion reports whether a set of fields contains a part of spec.conversion.
func ownsConversion(raw []byte) bool {
	var set struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if json.Unmarshal(raw, &set) != nil {
		return false
	}
	_, owns := set.Spec["f:conversion"]
	return owns
}

const (
	// firstPause and longestPause bound the delay before we overrule another writer again.
	firstPause, longestPause = time.Second, time.Minute
	// resetAfter is how long the conversion must stay ours until we overrule without a delay again.
	resetAfter = 10 * time.Minute
)

// Pause returns the delay before the conversion is set again, given how often that was necessary in a row.
func Pause(times int) time.Duration {
	return pause.Growing{First: firstPause, Last: longestPause}.After(times)
}
