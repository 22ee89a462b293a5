package page

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/fleet"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/report"
	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/show"
	"github.com/spokelet/spokelet/internal/causes"
)

// view is what one request is answered with.
type view struct {
	// Template is the name of its template, and Here that of the entry of the navigation.
	Template, Here string
	Title          string
	Status         int
	Data           any
	// Gaps are what could not be read besides the fleet.
	Gaps []fleet.Gap
}

//go:embed templates/*.html
var templates embed.FS

// around is what stands around each view.
type around struct {
	view

	Hub, Kubernetes string
	Bundle          bool
	// At is when the fleet was read.
	At      time.Time
	Every   int
	Failed  string
	Code    causes.Code
	AllGaps []gap
}

// gap is what could not be read, with its code.
type gap struct {
	fleet.Gap

	Code causes.Code
}

// write writes a view.
func (p *Page) write(w http.ResponseWriter, v view, last kept) {
	a := around{view: v, Bundle: p.Bundle, At: p.Now(), Every: int(p.Every / time.Second)}
	if last.err != nil {
		a.Failed, a.Code = last.err.Error(), causes.HubUnreachable
	}
	gaps := v.Gaps
	if last.Snapshot != nil {
		a.Hub, a.Kubernetes, a.At = last.Hub, last.Kubernetes, last.Now
		gaps = append(gaps, last.Gaps...)
	}
	for _, g := range gaps {
		same := func(other gap) bool {
			return other.What == g.What && other.Rule == g.Rule && other.Undecoded() == g.Undecoded()
		}
		if !slices.ContainsFunc(a.AllGaps, same) {
			a.AllGaps = append(a.AllGaps, gap{Gap: g, Code: report.CodeOf(g)})
		}
	}
	var raw bytes.Buffer
	t, err := template.New("").Funcs(functions(a.At)).ParseFS(templates, "templates/around.html", "templates/parts.html",
		"templates/"+v.Template+".html")
	if err == nil {
		err = t.ExecuteTemplate(&raw, "around", a)
	}
	if err != nil { // A test writes each view.
		http.Error(w, fmt.Sprintf("writing the page: %v", err), http.StatusInternalServerError)
		return
	}
	body := show.SafeHTML(raw.Bytes())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if v.Status != 0 {
		w.WriteHeader(v.Status)
	}
	_, _ = w.Write(body) // A client that went away needs no answer.
}

// pages is a part of a long list.
type pages[T any] struct {
	Items []T
	// First and Last number the items of this part, and All is how many there are.
	First, Last, All int
	// Before and After are the addresses of the parts beside it; empty for none.
	Before, After string
}

// paged returns the part of a list that a request asks for. address is that of a part by its number.
func paged[T any](all []T, r *http.Request, size int, address func(page int) string) pages[T] {
	page, err := strconv.Atoi(r.URL.Query().Get("page"))
	last := max((len(all)-1)/size+1, 1)
	if err != nil || page < 1 {
		page = 1
	}
	page = min(page, last)
	from := (page - 1) * size
	to := min(from+size, len(all))
	p := pages[T]{Items: all[from:to], First: from + 1, Last: to, All: len(all)}
	if page > 1 {
		p.Before = address(page - 1)
	}
	if page < last {
		p.After = address(page + 1)
	}
	return p
}

// missing is the view of what does not exist.
func missing(kind, name string) view {
	return view{Template: "missing", Title: kind + " " + name, Status: http.StatusNotFound, Data: map[string]string{
		"Kind": kind, "Name": name,
	}}
}
