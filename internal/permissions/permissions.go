package permissions

import (
	"maps"
	"slices"
	"strings"

	"github.com/millrace-dev/millrace/journal"
)

// Resource is a table, or the indexes of a table, which are resources of their own in IAM.
type Resource string

// The resources. ReadModel is the table of read models in generations. Projected are the tables
// that projections write to.
const (
	Journal       Resource = "journal"
	JournalIndex  Resource = "journal/index"
	Snapshot      Resource = "snapshot"
	SnapshotIndex Resource = "snapshot/index"
	Checkpoint    Resource = "checkpoint"
	ReadModel     Resource = "readmodel"
	Process       Resource = "process"
	ProcessIndex  Resource = "process/index"
	Dedup         Resource = "dedup"
	Keys          Resource = "keys"
	Projected     Resource = "projected"

	ProjectedIndex Resource = "projected/index"
)

// Table returns the table of a resource: of indexes, the table that has them.
func (r Resource) Table() Resource {
	table, _, _ := strings.Cut(string(r), "/")
	return Resource(table)
}

// Needs are actions by resource. The actions of a resource are separated by spaces, and have no
// "dynamodb:" before them.
type Needs map[Resource]string

// Program is something that runs, such as a function of a package.
type Program struct {
	// Name is unique.
	Name string
	// Row is the name of its row in the documentation, without backticks. Default: Name.
	Row string
	// As names programs whose permissions this one needs too.
	As []string
	// Both holds the permissions that the program itself needs in both layouts. Classic and Packed
	// hold those that it needs only in that layout.
	Both, Classic, Packed Needs
}

// Set is actions by resource.
type Set map[Resource][]string

// Of returns the permissions of programs in a layout.
func Of(layout journal.Layout, names ...string) Set {
	set := Set{}
	set.addPrograms(layout, names)
	for resource, actions := range set {
		slices.Sort(actions)
		set[resource] = slices.Compact(actions)
	}
	return set
}

func (s Set) addPrograms(layout journal.Layout, names []string) {
	for _, name := range names {
		p := find(name)
		s.addPrograms(layout, p.As)
		s.add(p.Both)
		if layout == journal.Packed {
			s.add(p.Packed)
		} else {
			s.add(p.Classic)
		}
	}
}

func (s Set) add(needs Needs) {
	for resource, actions := range needs {
		s[resource] = append(s[resource], strings.Fields(actions)...)
	}
}

func find(name string) Program {
	i := slices.IndexFunc(Programs, func(p Program) bool { return p.Name == name })
	if i < 0 {
		panic("permissions: no program has the name " + name)
	}
	return Programs[i]
}

// Role is a set of programs that run with the same credentials.
type Role struct {
	Name string
	// Does says what it is for, in a few words.
	Does     string
	Programs []string
}

// Of returns the permissions of the role in a layout.
func (r Role) Of(layout journal.Layout) Set { return Of(layout, r.Programs...) }

// RoleOf returns the role with a name.
func RoleOf(name string) (Role, bool) {
	i := slices.IndexFunc(Roles, func(r Role) bool { return r.Name == name })
	if i < 0 {
		return Role{}, false
	}
	return Roles[i], true
}

// Resources returns the resources of a set, sorted.
func (s Set) Resources() []Resource { return slices.Sorted(maps.Keys(s)) }
