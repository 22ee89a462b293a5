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
)

// Kind is a definition whose conversion is looked after.
type Kind struct {
	// Name is the name of the definition.
	Name string
	// SameFields says that its versions have the same fields, so that renaming the version loses nothing.
	SameFields bool
}

// Answer says whether whoever spec.conversion names converts.
type Answer int

const (
	// Unknown means that nobody was asked, or that the question failed for another reason.
	Unknown Answer = iota
	// Converted means that the API server converted an object.
	Converted
	// NotConverted means that it could not.
	NotConverted
)

// Probe is what the API server answered to a request that it has to convert.
type Probe struct {
	// Answer says whether it converted.
	Answer Answer
	// Message is the error of the API server.
	Message string
}

// Facts are what is known about the conversion of one definition.
type Facts struct {
	// Kind is the definition.
	Kind Kind
	// Served are the versions that it serves; nil where there is no such definition.
	Served []string
	// Conversion is its spec.conversion.
	Conversion *apiextensionsv1.CustomResourceConversion
	// Ours is where the API server finds our webhook; nil where we have none.
	Ours *apiextensionsv1.WebhookClientConfig
	// Silent is why our webhook does not answer; empty when it does.
	Silent string
	// Write reports whether we may change the definition.
	Write bool
	// Sibling reports whether our webhook converts another definition of add-ons.
	Sibling bool
	// Probe is what the API server said.
	Probe Probe
}

// Verdict is what follows from the facts.
type Verdict struct {
	// Problem is why requests in another version than the stored one fail or lose fields; empty when none does.
	Problem string
	// Announce asks for our webhook in spec.conversion.
	Announce bool
	// Recheck asks to look again after a while though nothing changes: somebody else converts.
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
		// What the API server trusts is not what we serve with, or no longer.
		v := Verdict{Announce: f.Write, Recheck: !f.Write}
		if f.Probe.Answer != Converted {
			v.Problem = fmt.Sprintf("the webhook in the conversion of %s is ours, but not as it is served: %s",
				f.Kind.Name, remedy(f))
		}
		return v
	}
	return theirs(f, client)
}

// ours judges a definition that names our webhook.
func ours(f Facts) Verdict {
	switch {
	case f.Silent != "":
		return Verdict{Problem: fmt.Sprintf("%s is to be converted by the webhook of this hub manager, which does not "+
			"answer: %s", f.Kind.Name, f.Silent)}
	case f.Probe.Answer == NotConverted && !strings.Contains(f.Probe.Message, noEndpoints):
		return Verdict{Recheck: true, Problem: fmt.Sprintf("%s is to be converted by the webhook of the hub manager at "+
			"%s, which the API server does not reach: %s", f.Kind.Name, address(f.Ours), f.Probe.Message)}
	}
	// A Service without publishNotReadyAddresses has no endpoints until we are ready: that must not keep us from it.
	return Verdict{Recheck: f.Probe.Answer != Converted}
}

// noEndpoints is in the error of the API server when no pod behind a Service is ready.
const noEndpoints = "no endpoints available"

// theirs judges a definition that names the webhook of somebody else.
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
	// Nobody serves the kinds of add-ons apart from each other: this is what was left when ours was put into the other.
	return Verdict{Recheck: true, Announce: f.Sibling && f.Write && f.Silent == "", Problem: fmt.Sprintf(
		"it is not known whether the webhook at %s converts %s: %s", address(client), f.Kind.Name, f.Probe.Message)}
}

// remedy says what becomes of a problem, or what an administrator can do about it.
func remedy(f Facts) string {
	switch {
	case f.Ours == nil:
		return "tell the hub manager by --webhook-service or --webhook-url where the API server reaches its webhook"
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

// SameWebhook reports whether a conversion names exactly the webhook, with what the API server fills in.
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

// webhookOf returns the webhook of a conversion; nil when the API server converts by renaming.
func webhookOf(c *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.WebhookClientConfig {
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil {
		return nil
	}
	return c.Webhook.ClientConfig
}

// address names where a webhook is found.
func address(client *apiextensionsv1.WebhookClientConfig) string {
	switch {
	case client.URL != nil:
		return *client.URL
	case client.Service != nil:
		return client.Service.Namespace + "/" + client.Service.Name
	}
	return "nowhere"
}

// Describe names a conversion for people.
func Describe(c *apiextensionsv1.CustomResourceConversion) string {
	if client := webhookOf(c); client != nil {
		return "the webhook at " + address(client)
	}
	return "None"
}

// Setter returns the field manager that set the conversion of a definition last, besides us; empty when managedFields
// name none.
func Setter(fields []metav1.ManagedFieldsEntry, us ...string) string {
	var name string
	var last time.Time
	for _, entry := range fields {
		if slices.Contains(us, entry.Manager) || entry.FieldsV1 == nil || !ownsConversion(entry.FieldsV1.Raw) {
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

// owns reports whether a field manager owns anything of the conversion.
func owns(fields []metav1.ManagedFieldsEntry, manager string) bool {
	return slices.ContainsFunc(fields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.FieldsV1 != nil && ownsConversion(entry.FieldsV1.Raw)
	})
}

// ownsConversion reports whether a set of fields holds anything of spec.conversion.
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
	// firstPause and longestPause bound how long we wait before we overrule somebody again.
	firstPause, longestPause = time.Second, time.Minute
	// resetAfter is how long nobody must have set the conversion back until we overrule at once again.
	resetAfter = 10 * time.Minute
)

// Pause returns how long to wait before the conversion is put back, given how often that was needed in a row.
func Pause(times int) time.Duration {
	if times == 0 {
		return 0
	}
	pause := firstPause
	for range times - 1 {
		if pause *= 2; pause >= longestPause {
			return longestPause
		}
	}
	return pause
}
