package policies

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and the version of the kinds.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "addon.spokelet.io", Version: "v1alpha1"}
}

// Install registers the kinds.
func Install(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(),
		&AddOnPolicy{}, &AddOnPolicyList{}, &MaintenanceWindow{}, &MaintenanceWindowList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}

// AddOnPolicy says whether and how a fleet may get changes of the add-on whose ClusterManagementAddOn has its name.
type AddOnPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AddOnPolicySpec   `json:"spec,omitempty"`
	Status AddOnPolicyStatus `json:"status,omitempty"`
}

// Approval says what a person has to approve before a cluster begins to change.
type Approval string

// The approvals.
const (
	// ApprovalNone means nothing; it is the default.
	ApprovalNone Approval = "None"
	// ApprovalPerRollout means each content once, for all clusters.
	ApprovalPerRollout Approval = "PerRollout"
	// ApprovalPerWave means each content once for each wave of each placement. Who approves the content itself approves
	// all its waves.
	ApprovalPerWave Approval = "PerWave"
)

// Action says what becomes of clusters on which a content failed.
type Action string

// The actions.
const (
	// ActionStop leaves them as they are; it is the default.
	ActionStop Action = "Stop"
	// ActionUndo returns those that failed to the last content that completed for them.
	ActionUndo Action = "Undo"
	// ActionUndoAll returns all clusters of the placement to the last content that completed for it, once its rollout has
	// stopped.
	ActionUndoAll Action = "UndoAll"
)

// Removals says when an add-on may go from clusters that no placement selects any more.
type Removals string

// The removals.
const (
	// RemovalsAtOnce means at any time; it is the default.
	RemovalsAtOnce Removals = "AtOnce"
	// RemovalsInWindows means when the windows of the cluster let it change.
	RemovalsInWindows Removals = "InWindows"
)

// DependencyType says what becomes of a cluster without the dependency.
type DependencyType string

// The types, as in OCM's enhancement proposal 156.
const (
	// DependencyRequired means that the add-on waits for it; it is the default.
	DependencyRequired DependencyType = "Required"
	// DependencyOptional means that the order is kept where the cluster has the dependency, and nothing waits elsewhere.
	DependencyOptional DependencyType = "Optional"
)

// AddOnPolicySpec is what a person decides about the changes of an add-on.
type AddOnPolicySpec struct {
	// Paused keeps clusters from beginning to change while it is there. What has begun is finished, and repairs,
	// credentials and health go on.
	Paused *Pause `json:"paused,omitempty"`
	// Approval says what has to be approved; empty means ApprovalNone.
	Approval Approval `json:"approval,omitempty"`
	// Approved are the contents, or waves of contents, that may be rolled out, by the names that the status has for them.
	Approved []string `json:"approved,omitempty"`
	// OnFailure says what becomes of clusters on which a content failed; nil means ActionStop.
	OnFailure *OnFailure `json:"onFailure,omitempty"`
	// Undo are the contents that people undid, by their names: all clusters return from them to the last content that
	// completed.
	Undo []string `json:"undo,omitempty"`
	// Retry are the contents that may be rolled out although the hub manager undid them; it does not undo them again.
	Retry []string `json:"retry,omitempty"`
	// DependsOn are the add-ons that come before this one on each cluster, and go after it.
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Removals says when the add-on may go from clusters that no placement selects any more; empty means RemovalsAtOnce.
	Removals Removals `json:"removals,omitempty"`
}

// OnFailure says what the hub manager does with clusters on which a content failed.
type OnFailure struct {
	// Action is what it does; empty means ActionStop.
	Action Action `json:"action,omitempty"`
	// After is how long a cluster has to have failed; zero means at once.
	After metav1.Duration `json:"after,omitempty"`
	// MaxTries is how many contents in a row may be tried and undone. After that, no further one begins until a person
	// approves it, or changes this. Zero means DefaultMaxTries.
	MaxTries int32 `json:"maxTries,omitempty"`
}

// DefaultMaxTries is how many contents in a row may be tried and undone where nothing else is said.
const DefaultMaxTries = 3

// Dependency is an add-on that comes before another one.
type Dependency struct {
	// Name is that of the ClusterManagementAddOn.
	Name string `json:"name"`
	// Type says what becomes of a cluster without it; empty means DependencyRequired.
	Type DependencyType `json:"type,omitempty"`
	// Condition is the condition of its ManagedClusterAddOn that has to be True; empty means Available.
	Condition string `json:"condition,omitempty"`
	// Install brings the dependency along to the clusters of the add-on.
	Install bool `json:"install,omitempty"`
}

// Pause says why an add-on is paused.
type Pause struct {
	// Reason is for people; it may be empty.
	Reason string `json:"reason,omitempty"`
}

// AddOnPolicyStatus is what the hub manager makes of an AddOnPolicy.
type AddOnPolicyStatus struct {
	// ObservedGeneration is the generation that the rest is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Problem is why the policy cannot be followed; empty where it can. Clusters do not begin to change meanwhile.
	Problem string `json:"problem,omitempty"`
	// Waiting is how many clusters keep what they have because of the policy, or of a window.
	Waiting int32 `json:"waiting"`
	// Contents are the contents that clusters wait for, those of most clusters first; at most MaxContents. With approval
	// PerWave they are the waves of contents, in the order in which they have their turn.
	Contents []Content `json:"contents,omitempty"`
	// Unused are the approved names that no content or wave has that any cluster is to get now; at most MaxContents. One
	// counts again when its content comes back.
	Unused []string `json:"unused,omitempty"`
	// Placements are what the placements of the add-on give, and what completed for each; at most MaxPlacements.
	Placements []PlacementContents `json:"placements,omitempty"`
	// Undone are the contents that were undone, those of the policy since a new content completed last; at most MaxUndone.
	Undone []Undone `json:"undone,omitempty"`
}

// MaxContents is how many contents a status has.
const MaxContents = 16

// Content is a content that clusters wait for.
type Content struct {
	// Name is by what it is approved. Other content has another name.
	Name string `json:"name"`
	// Configurations are those that it consists of, for people.
	Configurations []string `json:"configurations,omitempty"`
	// Clusters is how many clusters wait for it.
	Clusters int32 `json:"clusters"`
	// Approved reports whether it is approved.
	Approved bool `json:"approved"`
	// Wave names the wave of the content that Name approves; empty where it approves all clusters.
	Wave string `json:"wave,omitempty"`
	// Content is the name that approves all waves of the content; empty where Name does.
	Content string `json:"content,omitempty"`
	// Turn reports whether it is the turn of the wave: those before it are finished.
	Turn bool `json:"turn,omitempty"`
}

// AddOnPolicyList is a list of AddOnPolicies.
type AddOnPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []AddOnPolicy `json:"items"`
}

// MaintenanceWindow says when clusters may begin to change.
type MaintenanceWindow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MaintenanceWindowSpec   `json:"spec,omitempty"`
	Status MaintenanceWindowStatus `json:"status,omitempty"`
}

// MaintenanceWindowSpec describes a window; see package windows for what its clock does.
type MaintenanceWindowSpec struct {
	// Kind is Allow or Deny. Deny wins.
	Kind string `json:"kind"`
	// Schedule has the five fields of cron, and Duration how long each occurrence is.
	Schedule string          `json:"schedule"`
	Duration metav1.Duration `json:"duration"`
	// TimeZone is the name of the time zone of the schedule, as in Europe/Berlin; empty means UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// TimeZoneClaim is the ClusterClaim with the name of the time zone of a cluster, in place of TimeZone.
	TimeZoneClaim string `json:"timeZoneClaim,omitempty"`
	// ClusterSelector selects clusters by their labels; an empty one selects all.
	ClusterSelector metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// AddOns are the names of the add-ons that it is for; none means all.
	AddOns []string `json:"addOns,omitempty"`
	// Until is when no occurrence begins any more; nil means never.
	Until *metav1.Time `json:"until,omitempty"`
}

// IsFor reports whether the window is for an add-on.
func (s *MaintenanceWindowSpec) IsFor(addOn string) bool {
	return len(s.AddOns) == 0 || slices.Contains(s.AddOns, addOn)
}

// MaintenanceWindowStatus is what the hub manager makes of a MaintenanceWindow.
type MaintenanceWindowStatus struct {
	// ObservedGeneration is the generation that the rest is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Active reports whether it is active on any cluster now.
	Active bool `json:"active"`
	// NextStart is when an occurrence begins next on any cluster; nil where none does.
	NextStart *metav1.Time `json:"nextStart,omitempty"`
	// Clusters is how many clusters it selects.
	Clusters int32 `json:"clusters"`
	// Problem is why it cannot be used, on all clusters or on some; empty where it can. Clusters where it cannot do not
	// begin to change.
	Problem string `json:"problem,omitempty"`
}

// MaintenanceWindowList is a list of MaintenanceWindows.
type MaintenanceWindowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MaintenanceWindow `json:"items"`
}
