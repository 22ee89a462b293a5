package work

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/spokelet/spokelet/internal/reconcile"
)

const (
	// deniedPause is when a denied manifest is asked about again, should no change of RBAC be heard before (work
	// contract, section 1.9).
	deniedPause = time.Minute
	// clearanceLife is how long an allowance is believed: RBAC is heard of, other authorizers are not.
	clearanceLife = 5 * time.Minute
	// clearanceSpread spreads the reviews of allowances that no watch would take back.
	clearanceSpread = 0.5
	// authorizerLag is how long after a change of RBAC an answer may still be that of before: the authorizer of the API
	// server learns of changes by a watch, as we do. Answers from within it are asked for again, the first time after
	// firstReview.
	authorizerLag, firstReview = 2 * time.Second, 250 * time.Millisecond
)

// executor is the ServiceAccount of the spoke whose rights a work has.
type executor struct{ namespace, name string }

// String is the user name of the ServiceAccount.
func (e executor) String() string { return "system:serviceaccount:" + e.namespace + ":" + e.name }

// groups are those that the API server gives the ServiceAccount.
func (e executor) groups() []string {
	return []string{"system:serviceaccounts", "system:authenticated", "system:serviceaccounts:" + e.namespace}
}

// executorOf reads spec.executor; the texts are those of the work contract, section 1.9.
func executorOf(spec *workv1.ManifestWorkExecutor) (executor, *failure) {
	subject := spec.Subject
	switch {
	case subject.Type != workv1.ExecutorSubjectTypeServiceAccount:
		return executor{}, &failure{
			reason:  workv1.AppliedManifestFailed,
			message: "only support ServiceAccount type for the executor",
		}
	case subject.ServiceAccount == nil:
		return executor{}, &failure{
			reason: workv1.AppliedManifestFailed, message: "the executor service account is nil",
		}
	}
	return executor{namespace: subject.ServiceAccount.Namespace, name: subject.ServiceAccount.Name}, nil
}

// verbs are what the executor of a work must be allowed for one manifest. What is only read needs no more than that:
// the manifest of strategy ReadOnly, and the one that is complete and never applied again.
func (t *task) verbs() []string {
	if t.frozen || t.option.strategy.Type == workv1.UpdateStrategyTypeReadOnly {
		return []string{"get"}
	}
	verbs := []string{"create", "update", "patch", "get"}
	if t.owned {
		verbs = append(verbs, "delete")
	}
	return verbs
}

// question is all that an answer about the rights of an executor depends on, RBAC itself aside. An answer counts for
// the same question and for no other: that an object may be read says nothing about writing it.
type question struct {
	id      identity
	version string
	// content digests the manifest and how it is applied, as does its wish, whatever keeps it from being applied now.
	content digest
	// verbs are what was asked for; handsOut tells that a dry run of the manifest was, too.
	verbs    string
	handsOut bool
}

// question is what is asked about the executor of the task.
func (t *task) question() question {
	return question{
		id: t.id(), version: t.resource.Version, content: t.wish.content,
		verbs: strings.Join(t.verbs(), ","), handsOut: t.grantsRights(),
	}
}

// grantsRights reports whether applying the manifest hands out rights, so that the executor must hold them itself.
func (t *task) grantsRights() bool {
	return !t.frozen && t.option.strategy.Type != workv1.UpdateStrategyTypeReadOnly &&
		t.resource.Group == rbacv1.GroupName &&
		slices.Contains([]string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}, t.resource.Resource)
}

// binds is the role that the manifest binds; false when it is no binding.
func (t *task) binds() (roleKey, bool) {
	if t.resource.Resource != "rolebindings" && t.resource.Resource != "clusterrolebindings" {
		return roleKey{}, false
	}
	var manifest struct {
		RoleRef rbacv1.RoleRef `json:"roleRef"`
	}
	if json.Unmarshal(t.raw, &manifest) != nil {
		return roleKey{}, false
	}
	return roleOf(manifest.RoleRef, t.namespace), true
}

// answer is what the API server said to one question about an executor.
type answer struct {
	verb    string
	allowed bool
	err     error
}

// clearance is what is known about the rights of an executor over one manifest.
type clearance struct {
	// denied says why the manifest must not be applied; nil when it may be.
	denied *failure
	// unread says why the object must not be read; nil when it may be.
	unread *failure
	// at is the instant of the questions, changed that of the change of RBAC before them; zero when there was none.
	at, changed time.Time
	// dared tells that the check for escalation was passed, where there is one.
	dared bool
}

// clearanceOf makes a clearance of the answers. A definite "no" counts even when another question had no answer;
// without one the error says what is not known.
func clearanceOf(who executor, t *task, answers []answer) (clearance, error) {
	c := clearance{}
	var lacks []string
	var unknown error
	for _, a := range answers {
		switch {
		case a.err != nil:
			unknown = a.err
		case !a.allowed:
			lacks = append(lacks, a.verb)
		}
		if a.verb == "get" {
			c.unread = unreadable(who, t, a)
		}
	}
	switch {
	case len(lacks) > 0 && !t.frozen:
		c.denied = denied(t, "", fmt.Sprintf("%s lacks %s", who, strings.Join(lacks, ", ")))
	case len(lacks) == 0 && unknown != nil:
		return clearance{}, unknown
	}
	return c, nil
}

// unreadable is why the object must not be read, after the question whether it may be; nil when it may.
func unreadable(who executor, t *task, a answer) *failure {
	switch {
	case a.err != nil:
		return &failure{reason: workv1.AppliedManifestFailed, message: a.err.Error()}
	case !a.allowed:
		return &failure{
			reason: workv1.AppliedManifestFailed, message: fmt.Sprintf("%s is not allowed to get %s", who, t.id()),
		}
	}
	return nil
}

// denied is the refusal of a manifest with the text of the work contract, section 1.9, and after it why.
func denied(t *task, suffix, why string) *failure {
	id := t.id()
	return &failure{reason: workv1.AppliedManifestFailed, message: fmt.Sprintf(
		"not allowed to apply the resource %s %s, %s %s%s, will try again in %s; %s",
		id.Group, id.Resource, id.Namespace, id.Name, suffix, deniedPause, why)}
}

// again is when the questions are asked again without anything being heard; watched reports whether changes of RBAC
// are heard at all. Zero means never.
func (c clearance) again(watched bool, id identity) time.Time {
	var soon, late time.Time
	if since := c.at.Sub(c.changed); !c.changed.IsZero() && since < authorizerLag {
		soon = c.at.Add(max(firstReview, 3*since))
	}
	switch {
	case c.denied != nil || c.unread != nil:
		late = c.at.Add(deniedPause)
	case !watched:
		late = c.at.Add(reconcile.Spread(clearanceLife, clearanceSpread, id.String()))
	}
	return reconcile.Earliest(soon, late)
}

// believed reports whether the clearance still counts at now.
func (c clearance) believed(now time.Time, watched bool, id identity) bool {
	again := c.again(watched, id)
	return now.Before(c.at.Add(clearanceLife)) && (again.IsZero() || now.Before(again))
}

// denial is why an executor keeps a manifest from being applied, or its object from being read.
type denial struct {
	// err is why the manifest is not applied; nil when it is complete and only reading is at stake.
	err error
	// unread is why the object is not read; nil when it may be.
	unread error
	// lasting tells that the answer is definite and not an error that trying again may cure.
	lasting bool
}

// obey makes the task follow a clearance.
func (t *task) obey(c clearance) {
	if c.denied == nil && c.unread == nil {
		return
	}
	t.denied = &denial{lasting: true}
	if c.denied != nil {
		t.denied.err = c.denied
	}
	if c.unread != nil {
		t.denied.unread = c.unread
	}
	t.mark(func(w *wish) { w.denied = true })
}

// refuse keeps the task from any request about its object.
func (t *task) refuse(err error, lasting bool) {
	t.denied = &denial{err: err, unread: err, lasting: lasting}
	t.mark(func(w *wish) { w.denied = true })
}

// postpone keeps the task from being applied, because it is not known whether it may be. Its object may be read.
func (t *task) postpone(err error) {
	t.denied = &denial{err: err, lasting: isRefusal(err)}
	t.mark(func(w *wish) { w.denied = true })
}

// mark gives the manifest of the task another wish than it has when nothing keeps it from being applied.
func (t *task) mark(how func(*wish)) {
	marked := *t.manifest
	how(&marked.wish)
	t.manifest = &marked
}

// refused is the result of a task whose object must not be read. What was known before a mere error stays known.
func (t *task) refused() result {
	res := result{presence: presenceUnknown, readErr: t.denied.unread}
	if !t.denied.lasting && !t.prior.checked.IsZero() {
		res = recorded(t)
	}
	res.err, res.lasting = t.denied.err, t.denied.lasting
	return res
}
