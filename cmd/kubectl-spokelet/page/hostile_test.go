package page

import (
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/simulated"
)

const mebibyte = 1 << 20

// harmless fails where a page has an element or an attribute that no template of ours has, or what does not show.
func harmless(t *testing.T, page string) {
	t.Helper()
	for _, r := range page {
		require.True(t, r == '\n' || unicode.IsPrint(r), "%q", r)
	}
	root, err := html.Parse(strings.NewReader(page))
	require.NoError(t, err)
	scripts := 0
	for node := range root.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		require.NotContains(t, []string{"img", "iframe", "object", "embed", "base", "template", "style"}, node.Data)
		if node.Data == "script" {
			scripts++
			require.Nil(t, node.FirstChild, "a script that stands in the page")
		}
		for _, a := range node.Attr {
			require.False(t, strings.HasPrefix(a.Key, "on"), "%s=%q", a.Key, a.Val)
			require.NotEqual(t, "style", a.Key)
			if a.Key == "href" || a.Key == "src" || a.Key == "action" {
				name, _, _ := strings.Cut(a.Val, "?")
				name, _, _ = strings.Cut(name, "#")
				require.Contains(t, []string{
					"", "./", "addon", "cluster", "clusters", "problems", "page.js", "page.css", "icon.svg",
				}, name, "it leads away")
			}
		}
	}
	require.Equal(t, 1, scripts)
}

func TestTextsOfOthersHarmNothing(t *testing.T) {
	hub, err := simulated.Harmful()
	s := open(t, hub, err)
	for _, view := range []string{
		"", "clusters", "problems", "problems?code=SPK052", to("clusters", "q", simulated.Hostile[:200]),
		to("clusters", "like", simulated.Hostile[:200]), "addon?name=logs", to("addon", "name", "javascript:alert(1)"),
		"cluster?name=store-001", "cluster?name=store-001&addon=logs", to("cluster", "name", "../../x?y#z"),
		to("cluster", "name", "javascript:alert(1)", "addon", "javascript:alert(1)"),
		to("addon", "name", "logs", "placement", simulated.Hostile[:200], "stage", simulated.Hostile[:200], "page", "-1"),
		to("problems", "code", "SPK041", "addon", simulated.Hostile[:200], "cluster", "x", "page", "99999999999999999999"),
	} {
		page := s.get(t, view)
		harmless(t, page)
		assert.Less(t, len(page), mebibyte, view)
	}
	for _, view := range []string{
		to("addon", "name", simulated.Hostile[:200]), to("problems", "code", simulated.Hostile[:200]),
		to("cluster", "name", simulated.Hostile[:200]), "cluster?name=" + strings.Repeat("%3Cb%3E", 900),
	} {
		w := s.ask(http.MethodGet, s.Path()+view, "localhost")
		assert.Equal(t, http.StatusNotFound, w.Code, view)
		harmless(t, w.Body.String())
	}
}

func TestLongListsComeInPages(t *testing.T) {
	hub, err := simulated.Large(1500, 4)
	s := open(t, hub, err)
	for _, view := range []string{"", "clusters", "problems", "problems?code=SPK052", "addon?name=addon-01", "clusters?page=15"} {
		page := s.get(t, view)
		harmless(t, page)
		assert.Less(t, len(page), mebibyte/4, view)
	}
	first := s.get(t, "clusters")
	assert.Contains(t, first, "1 to 100 of 1,500")
	assert.Contains(t, first, `rel="next" href="clusters?page=2"`)
	assert.NotContains(t, first, `rel="prev"`)
	last := s.get(t, "clusters?page=15")
	assert.Contains(t, last, "1,401 to 1,500 of 1,500")
	assert.NotContains(t, last, `rel="next"`)
	assert.Equal(t, last, s.get(t, "clusters?page=99"), "the last page is the last one")
}
