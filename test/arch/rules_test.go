package arch

// rule restricts the imports of some packages. Paths are those below the module root; a path that ends in "/..." stands
// for the package and all below it, one that ends in "/*" for those below it only. Imports of other modules are written
// in full.
type rule struct {
	// name says the rule in words, as the message of a violation begins.
	name string
	// from are the packages that are restricted, but for except.
	from, except []string
	// only, when set, is all that they may import of this module, besides what is below themselves.
	only []string
	// never holds what they may not import.
	never []string
}

// production is all code that is shipped.
var production = []string{"cmd/...", "agent/...", "hub/...", "lease/...", "csr/...", "internal/...", "manifests/..."}

// libraries are the packages that a reconciler of the hub may build on, besides the kit.
var libraries = []string{"lease", "csr", "csr/approve", "csr/sign", "hub/addon", "hub/fleet"}

// importRules are the rules of docs/adr/0001 and of the architecture, in its order.
var importRules = []rule{
	{
		name: "a command imports its composition root and nothing else of ours",
		from: []string{"cmd/spokelet"}, only: []string{"agent"},
	},
	{
		name: "a command imports its composition root and nothing else of ours",
		from: []string{"cmd/spokelet-hub"}, only: []string{"hub"},
	},
	{
		name: "the agent never imports the hub",
		from: []string{"agent/..."}, never: []string{"hub/...", "csr/approve", "csr/sign"},
	},
	{
		name: "the hub never imports the agent",
		from: []string{"hub/..."}, never: []string{"agent/...", "csr/issue"},
	},
	{
		name: "only composition roots and commands know flags",
		from: production, except: []string{"cmd/...", "agent", "hub", "hub/addon/manager", "hub/render", "internal/command"},
		never: []string{"flag", "github.com/spf13/pflag", "github.com/spf13/pflag/..."},
	},
	{
		name: "a reconciler of the agent imports libraries, the kit and API types, never a sibling or its root",
		from: []string{"agent/*"}, except: []string{"agent/work/*"},
		only: []string{"lease", "csr", "csr/issue", "internal/..."},
	},
	{
		name: "a reconciler of the hub imports libraries, the kit and API types, never a sibling or its root",
		from: []string{"hub/*"}, except: []string{"hub/addon", "hub/addon/*", "hub/deploy/works", "hub/render"},
		only: append([]string{"internal/..."}, libraries...),
	},
	{
		// It asks the reconcilers themselves, so that no second implementation can differ (docs/adr/0024).
		name: "the rendering from files is a composition root of what decides about the works of an add-on",
		from: []string{"hub/render"}, only: append([]string{
			"internal/...", "manifests", "hub/configure", "hub/deploy", "hub/deploy/works", "hub/install", "hub/template",
		}, libraries...),
	},
	{
		name: "the works of an add-on have the feedback rules that its health needs",
		from: []string{"hub/deploy/works"}, only: []string{"internal/...", "hub/addon", "hub/deploy/health"},
	},
	{
		name: "a library imports API types, and of the kit names, texts and pauses",
		from: []string{"lease/...", "csr"}, never: []string{"csr/*"},
		only: []string{"internal/message", "internal/names", "internal/pause"},
	},
	{
		name: "a room of the library of certificates imports what both sides agree on, and no other room",
		from: []string{"csr/*"}, only: []string{"csr", "internal/message", "internal/names", "internal/pause"},
	},
	{
		name: "the protocol of tokens imports API types, names and the library of certificates, whose rotation it shares",
		from: []string{"internal/token"}, only: []string{"csr", "internal/message", "internal/names"},
	},
	{
		name: "the library for authors imports the other libraries, and of the kit names and texts",
		from: []string{"hub/addon"},
		only: []string{"lease", "csr", "csr/approve", "internal/message", "internal/names"},
	},
	{
		name: "a builder of objects for authors imports their library",
		from: []string{"hub/addon/*"}, except: []string{"hub/addon/manager"},
		only: []string{"hub/addon", "internal/names"},
	},
	{
		// It is a composition root: it knows reconcilers, and not the root of the hub manager, whose webhooks, placement
		// and definitions an author's program does not need.
		name: "the program of an author runs the reconcilers of add-ons",
		from: []string{"hub/addon/manager"},
		only: []string{
			"hub/addon", "hub/approval", "hub/configure", "hub/deploy", "hub/deploy/hosting", "hub/deploy/works", "hub/hashes",
			"hub/render", "csr/approve", "internal/...",
		},
	},
	{
		name: "the kit imports nothing of ours but the kit",
		from: []string{"internal/..."}, except: []string{"internal/token"}, only: []string{"internal/..."},
	},
	{
		name: "names, texts and pauses are leaves",
		from: []string{"internal/message", "internal/names", "internal/pause"}, only: []string{},
	},
	{
		name: "manifests are a leaf",
		from: []string{"manifests"}, only: []string{},
	},
	{
		name: "nothing that is shipped imports test code",
		from: production,
		never: []string{
			"test/...", "testing", "testing/...", "github.com/stretchr/testify/...", "k8s.io/utils/clock/testing",
			"sigs.k8s.io/controller-runtime/pkg/client/fake", "sigs.k8s.io/controller-runtime/pkg/envtest",
		},
	},
	{
		name: "OCM's own code is a peer, not a dependency; its API types are what we share",
		from: append([]string{"test/..."}, production...),
		never: []string{
			"open-cluster-management.io/ocm/...", "open-cluster-management.io/addon-framework/...",
			"open-cluster-management.io/sdk-go/...",
		},
	},
	{
		name:  "Helm is linked only by the module hub/addon/helm",
		from:  append([]string{"test/..."}, production...),
		never: []string{"helm.sh/helm/...", "hub/addon/helm"},
	},
}

// workImports are the imports inside agent/work, one way, from the bottom up: for each package those of its siblings that
// it may import besides the kit and what is below itself. Only agent/work knows all of them.
var workImports = map[string][]string{
	"manifest": {},
	"jsonpath": {},
	"offline":  {},
	"missing":  {},

	"spoke":    {"manifest"},
	"ignore":   {"jsonpath", "manifest"},
	"feedback": {"jsonpath"},

	"inventory": {"manifest", "spoke"},
	"watch":     {"manifest"},
	"latency":   {"manifest"},
	"executor":  {"manifest", "spoke"},

	"apply/content": {},
	"apply/ssa":     {"apply/content", "ignore", "manifest"},
	"apply/merge":   {"apply/content", "apply/ssa", "inventory", "manifest"},

	"apply":  {"executor", "feedback", "ignore", "inventory", "manifest", "spoke", "watch"},
	"prune":  {"inventory", "manifest", "spoke", "watch"},
	"status": {"manifest", "watch"},
}

// workRules are the rules of workImports.
func workRules() []rule {
	rules := make([]rule, 0, len(workImports))
	for name, siblings := range workImports {
		only := []string{"internal/..."}
		for _, sibling := range siblings {
			only = append(only, "agent/work/"+sibling)
		}
		rules = append(rules, rule{
			name: "inside agent/work imports go one way", from: []string{"agent/work/" + name}, only: only,
		})
	}
	return rules
}

// bannedPackages are names that say nothing about what is inside.
var bannedPackages = []string{"util", "utils", "helper", "helpers", "common", "types", "controllers", "misc"}

// pureFiles are words in the names of files with decisions, and pureNever is what those may not import: a decision
// takes values. Without a context there is no call of the API server.
var (
	pureFiles = []string{"decide", "plan", "conclude", "status"}
	pureNever = []string{
		"context", "os", "math/rand", "math/rand/v2", "crypto/rand", "net/http", "github.com/go-logr/logr",
		"sigs.k8s.io/controller-runtime/pkg/log",
	}
)

// forbiddenCalls are calls that shipped code outside of commands does not make, with what to do instead.
var forbiddenCalls = map[string]string{
	"time.Now":           "take the instant from the injected clock",
	"time.Sleep":         "return the instant to wake at",
	"time.After":         "return the instant to wake at, or take a timer from the injected clock",
	"os.Exit":            "return an error",
	"context.Background": "pass the context on",
	"context.TODO":       "pass the context on",
}

// exportedVariables are the exported package variables that shipped code may have, each with its reason.
var exportedVariables = map[string]string{}

const (
	// maxFunction is the most lines of a function.
	maxFunction = 80
	// maxMain is the lines that a main.go stays under.
	maxMain = 40
)

// cutsItself are the packages that cut texts otherwise than by their bytes.
var cutsItself = []string{
	"agent/work/status", // By what a text takes in JSON.
}

// readsErrors are the packages that read the texts of errors.
var readsErrors = []string{
	"internal/apierror",
	"agent/hubconn", // net/http has no type for the errors of HTTP/2.
}
