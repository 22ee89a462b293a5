package skew

// Side is one of the two versions.
type Side int

// The two versions.
const (
	Old Side = iota
	New
)

// String returns its name.
func (s Side) String() string {
	if s == Old {
		return "old"
	}
	return "new"
}

// moment is when a program is replaced.
type moment string

// The moments, in the order of the story.
const (
	rolling  moment = "while a rollout is under way"
	stopped  moment = "while a bad version has stopped"
	fixing   moment = "while the fix goes through"
	rotating moment = "while certificates are replaced"
)

// Path is a way through the story: which versions run, and what they are replaced by.
type Path struct {
	// Name is its name in the table.
	Name string
	// Hub is the version of the hub manager, and Agents that of the agents, when the story begins.
	Hub, Agents Side
	// Replaced reports that each program is replaced by that of the other version: the hub manager first.
	Replaced bool
}

// Paths returns the paths of "make skew".
func Paths() []Path {
	return []Path{
		{Name: "old-hub", Hub: Old, Agents: New},
		{Name: "new-hub", Hub: New, Agents: Old},
		{Name: "upgrade", Hub: Old, Agents: Old, Replaced: true},
		{Name: "back", Hub: New, Agents: New, Replaced: true},
	}
}

// last returns the version of the hub manager at the end.
func (p Path) last() Side {
	if p.Replaced {
		return 1 - p.Hub
	}
	return p.Hub
}

// replaces returns which agent is replaced at a moment: the first, the second or the third, from 0 on. The hub manager
// has the first moment, and -1 stands for it.
func replaces(at moment) int {
	switch at {
	case stopped:
		return 0
	case fixing:
		return 1
	case rotating:
		return 2
	default:
		return -1
	}
}
