package page

import (
	"context"
	"fmt"
	"net/http"
	"time"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
)

// addOnData is the view of an add-on.
type addOnData struct {
	Name     string
	Row      matrixRow
	Complete bool
	// Bad is on how many clusters it is not well.
	Bad        int
	Placements []placement
	Problems   pages[shown]
	// Stage and Of name the stage and the placement whose clusters are asked for; empty for none.
	Stage, Of string
	Clusters  pages[string]
	// Policy is its policy; nil for none. Windows are those that are for it.
	Policy  *ruled
	Windows windows
}

// placement is how far the clusters of a placement are, as it is drawn.
type placement struct {
	report.PlacementRollout

	All    int
	Bar    []segment
	Waves  []wave
	Course *course
	Rows   []stageRow
}

// stageRow are clusters of one stage that say the like.
type stageRow struct {
	report.Stages

	// Key tells the row apart from others, also when clusters have moved.
	Key  string
	Few  []string
	More int
}

func (p *Page) addOn(_ context.Context, s kept, r *http.Request) (view, error) {
	query := r.URL.Query()
	d := addOnData{Name: query.Get("name"), Stage: query.Get("stage"), Of: query.Get("placement")}
	v := view{Template: "addon", Here: "fleet", Title: "Add-on " + d.Name}
	found := false
	for _, row := range s.Matrix {
		if row.Name == d.Name {
			found = true
			d.Row = matrixRow{AddOnRow: row, Bar: bar(barOrder(), row.Counts)}
			for _, standing := range report.Standings() {
				d.Row.Cells = append(d.Row.Cells, cell{standing, row.Counts[standing]})
			}
		}
	}
	if !found {
		return missing("add-on", d.Name), nil
	}
	far, _ := s.Rollout(d.Name) // It is empty where it may not be read.
	d.Complete, d.Bad = far.Complete, d.Row.Counts[report.StandsBadly]
	for _, one := range far.Placements {
		d.Placements = append(d.Placements, p.placed(s, one, d.Name))
		if one.Placement == d.Of && d.Stage != "" {
			d.Clusters = ofStage(one, report.Stage(d.Stage), d.Name, r)
		}
	}
	policy, windows := s.Rules(d.Name)
	d.Policy, d.Windows = ruledBy(policy, maxSayings, s.Now), shownWindows(windows)
	var all []shown
	for _, g := range s.Groups {
		if g.First.Name == d.Name && g.First.Kind != report.KindCluster {
			few := g.Clusters[:min(fewNames, len(g.Clusters))]
			all = append(all, shown{Group: g, Few: few, More: len(g.Clusters) - len(few), Titled: true})
		}
	}
	d.Problems = paged(all, r, perPage, func(page int) string { return to("addon", "name", d.Name, "page", page) })
	v.Data = d
	return v, nil
}

// ofStage returns the clusters of one stage.
func ofStage(one report.PlacementRollout, stage report.Stage, addOn string, r *http.Request) pages[string] {
	var all []string
	for _, stages := range one.Stages {
		if stages.Stage == stage {
			all = append(all, stages.Clusters...)
		}
	}
	return paged(all, r, 4*perPage, func(page int) string {
		return to("addon", "name", addOn, "placement", one.Placement, "stage", stage, "page", page)
	})
}

// placed draws how far the clusters of a placement are.
func (p *Page) placed(s kept, one report.PlacementRollout, addOn string) placement {
	d := placement{PlacementRollout: one}
	definition := s.Definition(addOn)
	var ref *fleet.PlacementRef
	if definition != nil {
		for i := range definition.Spec.InstallStrategy.Placements {
			if at := &definition.Spec.InstallStrategy.Placements[i]; at.Namespace+"/"+at.Name == one.Placement {
				ref = at
			}
		}
	}
	counts, rows := map[report.Stage]int{}, map[report.Stage]int{}
	for _, stages := range one.Stages {
		counts[stages.Stage] += len(stages.Clusters)
		d.All += len(stages.Clusters)
		few := stages.Clusters[:min(fewNames, len(stages.Clusters))]
		rows[stages.Stage]++
		d.Rows = append(d.Rows, stageRow{
			Stages: stages, Key: fmt.Sprintf("%s-%d", stages.Stage, rows[stages.Stage]), Few: few,
			More: len(stages.Clusters) - len(few),
		})
	}
	d.Bar = bar(stageOrder(), counts)
	for _, w := range report.Waves(one, ref, s.Decisions) {
		d.Waves = append(d.Waves, drawn(w))
	}
	until := time.Time{}
	if one.Reason != addonv1beta1.ProgressingReasonCompleted {
		until = s.Now
	}
	if len(one.Stages) > 0 {
		d.Course = drawnCourse(report.Course(one, s.OfName(addOn)), until)
	}
	return d
}
