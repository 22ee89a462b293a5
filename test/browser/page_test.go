package browser

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/simulated"
)

// every is how often a page asks again in the tests.
const every = time.Second

// tab is a page that is open in a browser.
type tab struct {
	*testing.T

	ctx     context.Context //nolint:containedctx // A tab is a context for chromedp.
	hub     *simulated.Hub
	address string
	// end ends the plugin, and ended is closed then.
	end func()

	mutex sync.Mutex
	wrong []string
}

// open starts a browser with a page of a hub.
func open(t *testing.T, hub *simulated.Hub, err error) *tab {
	t.Helper()
	require.NoError(t, err)
	path := Find()
	if path == "" {
		t.Skip("SKIPPED: there is no Chromium in the path, so that the page was not played in a browser")
	}
	served, end := context.WithCancel(t.Context())
	address, ended, err := Serve(served, hub, every)
	require.NoError(t, err)
	ctx, stop := Start(t.Context(), path)
	o := &tab{T: t, ctx: ctx, hub: hub, address: address}
	o.end = func() {
		end()
		if ended != nil {
			assert.NoError(t, <-ended)
			ended = nil
		}
	}
	t.Cleanup(func() {
		stop()
		o.end()
	})
	require.NoError(t, chromedp.Listen(ctx, o.hear))
	return o
}

// hear notes what no page of ours may do: errors, what its policy had to forbid, dialogs, and requests to others.
func (o *tab) hear(event any) {
	said := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said = "exception: " + e.ExceptionDetails.Text
	case *log.EventEntryAdded:
		said = "log: " + e.Entry.Text
	case *page.EventJavascriptDialogOpening:
		said = "dialog: " + e.Message
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, o.address) {
			said = "request to " + e.Request.URL
		}
	}
	if said != "" {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.wrong = append(o.wrong, said)
	}
}

// do runs actions.
func (o *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	o.Helper()
	require.NoError(o, chromedp.Do(o.ctx, steps...))
}

// view opens a view.
func (o *tab) view(path string) {
	o.Helper()
	o.do(chromedp.Navigate(o.address+path), chromedp.WaitReady(chromedp.CSS("#main h1")))
}

// ask returns the value of an expression.
func ask[T any](o *tab, expression string) T {
	o.Helper()
	value, err := chromedp.Run(o.ctx, chromedp.Evaluate[T](expression))
	require.NoError(o, err, expression)
	return value
}

// wait waits until an expression is true.
func (o *tab) wait(expression string) {
	o.Helper()
	_, err := chromedp.Run(o.ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond)))
	require.NoError(o, err, expression)
}

// quiet fails where a page did what none may do.
func (o *tab) quiet() {
	o.Helper()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	assert.Empty(o, o.wrong)
}

// scheme makes the system of the reader dark or light.
func scheme(value string) chromedp.Action[chromedp.Void] {
	return Call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: value},
	}})
}

// views are those of a shop, with what stands on each.
func views() map[string]string {
	return map[string]string{
		"": "Fleet", "clusters": "Clusters", "problems": "Problems", "problems?code=SPK052": "SPK052",
		"addon?name=metrics": "Add-on metrics", "addon?name=logs": "Add-on logs", "cluster?name=store-003": "Cluster store-003",
		"cluster?name=store-003&addon=logs": "Add-on logs on store-003", "cluster?name=store-114": "Cluster store-114",
		"addon?name=logs&placement=add-ons%2Fstores&stage=waiting": "Add-on logs",
	}
}

// contrasts are the texts of a page whose contrast with what is behind them is less than 4.5.
const contrasts = `(() => {
  const parts = (color) => color.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const behind = (e) => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0.99) return c; } return [255, 255, 255]; };
  const bad = new Set();
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || e.closest(".hidden, .zero, .cells, .legend i, svg")) continue;
    if (!e.getClientRects().length) continue;
    const [a, b] = [light(parts(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.add(e.tagName + "." + e.className + " " + ratio.toFixed(2));
  }
  return [...bad];
})()`

// wide are the elements that reach over the edge of the window.
const wide = `[...document.querySelectorAll("body *")].filter((e) => { const r = e.getBoundingClientRect();
  return r.width && !e.closest(".hidden, .skip, thead, .defs") && (r.right > innerWidth + 1 || r.left < -1); })
  .map((e) => e.tagName + "." + e.className)`

// Each view is there on a wide and on a narrow window, light and dark, with texts that can be read, and nothing is cut.
func TestEachViewFitsAndCanBeRead(t *testing.T) {
	hub, err := simulated.Shop(2)
	o := open(t, hub, err)
	papers := map[string]bool{}
	for path, heading := range views() {
		for _, width := range []int64{360, 768, 1280} {
			for _, of := range []string{"light", "dark"} {
				o.do(scheme(of), chromedp.EmulateViewport(width, 800))
				o.view(path)
				name := fmt.Sprintf("%s at %d, %s", path, width, of)
				assert.Contains(t, ask[string](o, `document.querySelector("h1").innerText`), heading, name)
				assert.LessOrEqual(t, ask[int64](o, `document.documentElement.scrollWidth`), width, name)
				assert.Empty(t, ask[[]string](o, wide), name)
				assert.Empty(t, ask[[]string](o, contrasts), name)
				papers[of+" "+ask[string](o, `getComputedStyle(document.documentElement).backgroundColor`)] = true
			}
		}
	}
	assert.Len(t, papers, 2, "each scheme has its paper")
	assert.Equal(t, "en", ask[string](o, `document.documentElement.lang`))
	assert.Equal(t, int64(4), ask[int64](o, `["header", "nav", "main", "footer"].filter((n) => document.querySelector(n)).length`))
	o.quiet()
}

func TestAHealthyFleetIsCalm(t *testing.T) {
	hub, err := simulated.Healthy()
	o := open(t, hub, err)
	for path, said := range map[string]string{
		"": "✓ No problem was found", "problems": "✓ No problem was found", "addon?name=logs": "✓ The rollout is complete",
		"cluster?name=store-003&addon=logs": "✓ Nothing is wrong.",
	} {
		o.view(path)
		assert.Contains(t, ask[string](o, `document.querySelector("main").innerText`), said)
		assert.Equal(t, int64(0), ask[int64](o, `document.querySelectorAll(".state.bad, .s-bad, .verdict.bad").length`), path)
	}
	o.quiet()
}

func TestTextsOfOthersRunNoScript(t *testing.T) {
	hub, err := simulated.Harmful()
	o := open(t, hub, err)
	hostile := url.QueryEscape(simulated.Hostile[:200])
	for _, path := range []string{
		"", "clusters", "problems", "problems?code=SPK041", "addon?name=logs", "addon?name=javascript%3Aalert%281%29",
		"cluster?name=store-001", "cluster?name=store-001&addon=logs", "clusters?q=" + hostile, "cluster?name=" + hostile,
	} {
		o.do(chromedp.EmulateViewport(360, 800))
		o.view(path)
		assert.NotEqual(t, "harmed", ask[string](o, `document.title`), path)
		assert.Equal(t, int64(1), ask[int64](o, `document.scripts.length`), path)
		assert.Equal(t, int64(0), ask[int64](o, `document.images.length`), path)
		assert.Equal(t, int64(0), ask[int64](o, `[...document.links].filter((a) => !a.href.startsWith(location.origin)).length`), path)
		assert.LessOrEqual(t, ask[int64](o, `document.documentElement.scrollWidth`), int64(360), path)
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, said := range o.wrong {
		assert.Contains(t, said, "404", "an address that leads to nothing, and nothing else")
	}
}

// A page that is open shows how the rollout moves, and what a reader did with it stays.
func TestARolloutMovesWhileOneLooks(t *testing.T) {
	hub, err := simulated.Shop(2)
	o := open(t, hub, err)
	o.do(chromedp.EmulateViewport(900, 500))
	o.view("addon?name=metrics")
	require.Contains(t, ask[string](o, `document.querySelector("main").innerText`), "18 complete")
	ask[bool](o, `(() => { window.mark = 1; document.querySelector("details").open = true; scrollTo({top: 300, behavior: "instant"});
		const link = [...document.links].find((a) => a.innerText === "canary-2"); link.focus({preventScroll: true}); return true; })()`)
	for step := 3; step < 6; step++ {
		next, err := simulated.Shop(step)
		require.NoError(t, err)
		hub.Become(next)
		o.wait(fmt.Sprintf(`document.querySelector(".waves").innerText.includes("%d complete")`, doneOthers(step)))
		assert.Equal(t, int64(1), ask[int64](o, `window.mark`), "the page was not loaded again")
		assert.True(t, ask[bool](o, `document.querySelector("details").open`))
		assert.Equal(t, "canary-2", ask[string](o, `document.activeElement.innerText`), "the focus stays")
		assert.Equal(t, int64(300), ask[int64](o, `Math.round(scrollY)`))
	}
	assert.Equal(t, int64(doneOthers(5)), ask[int64](o, `document.querySelectorAll(".waves li:nth-child(2) .cell.well").length`))
	o.view("")
	broken, err := simulated.Healthy()
	require.NoError(t, err)
	hub.Become(broken)
	o.wait(`document.querySelector(".verdict").innerText.includes("No problem was found")`)
	o.quiet()
}

// doneOthers is how many clusters besides the canaries have the change after a step.
func doneOthers(step int) int { return min(6*(step+1), 40) }

func TestAHubOrAPluginThatIsGoneIsTold(t *testing.T) {
	hub, err := simulated.Shop(2)
	o := open(t, hub, err)
	o.view("")
	hub.Silence(true)
	o.wait(`document.querySelector(".banner")?.innerText.includes("SPK001") && document.querySelector("main").innerText.includes("store-001")`)
	hub.Silence(false)
	o.wait(`!document.querySelector(".banner")`)
	o.quiet()
	o.end()
	o.wait(`document.querySelector("#lost")?.innerText.includes("The plugin does not answer any more")`)
}

// Who has no mouse reaches all that can be reached, in the order in which it stands, and sees where they are.
func TestAKeyboardReachesEverything(t *testing.T) {
	hub, err := simulated.Shop(2)
	o := open(t, hub, err)
	o.do(chromedp.EmulateViewport(1280, 900))
	o.view("")
	o.do(chromedp.KeyEvent(kb.Tab))
	require.Equal(t, "Skip to the content", ask[string](o, `document.activeElement.innerText`))
	assert.True(t, ask[bool](o, `document.activeElement.getBoundingClientRect().left >= 0`), "it is seen when it has the focus")
	o.do(chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	assert.True(t, ask[bool](o, `document.querySelector("main").contains(document.activeElement)`), "it leads over the navigation")
	for path := range views() {
		o.view(path)
		const reachable = `[...document.querySelectorAll("a[href], button, input, summary, [tabindex='0']")].filter((e) => e.tabIndex >= 0)`
		all := ask[int](o, reachable+`.length`)
		for n := range all {
			o.do(chromedp.KeyEvent(kb.Tab))
			require.Equal(t, int64(n), ask[int64](o, reachable+`.indexOf(document.activeElement)`), "%s, step %d", path, n)
			require.NotEqual(t, "none", ask[string](o, `getComputedStyle(document.activeElement).outlineStyle`), "%s, step %d", path, n)
			require.NotEmpty(t, ask[string](o, `document.activeElement.innerText || document.activeElement.labels?.[0]?.innerText`))
		}
	}
	o.view("")
	o.do(chromedp.Focus(chromedp.CSS("#q")), chromedp.KeyEvent("canary"+kb.Enter), chromedp.WaitReady(chromedp.CSS("#c-canary-4")))
	assert.Equal(t, int64(4), ask[int64](o, `document.querySelectorAll("tbody tr").length`))
	o.quiet()
}

// Tables say what their columns and rows are, and nothing has the name of another one.
func TestTheStructureIsOneThatAProgramReadsAloud(t *testing.T) {
	hub, err := simulated.Shop(2)
	o := open(t, hub, err)
	for path := range views() {
		o.view(path)
		for what, expression := range map[string]string{
			"one first heading":             `document.querySelectorAll("h1").length - 1`,
			"headings go down one by one":   `[...document.querySelectorAll("h1, h2, h3")].filter((e, i, all) => i && e.tagName[1] - all[i - 1].tagName[1] > 1).length`,
			"each table has a caption":      `[...document.querySelectorAll("table")].filter((e) => !e.caption && !e.closest("details")).length`,
			"each heading of one its scope": `document.querySelectorAll("th:not([scope])").length`,
			"ids are unique":                `[...document.querySelectorAll("[id]")].length - new Set([...document.querySelectorAll("[id]")].map((e) => e.id)).size`,
			"sections have names":           `[...document.querySelectorAll("section")].filter((e) => !e.ariaLabel && !document.getElementById(e.getAttribute("aria-labelledby"))).length`,
			"pictures have texts":           `document.querySelectorAll("svg:not([aria-label]):not([aria-hidden])").length`,
			"states have words":             `[...document.querySelectorAll(".state")].filter((e) => e.innerText.trim().length < 3).length`,
		} {
			assert.Equal(t, int64(0), ask[int64](o, expression), "%s: %s", path, what)
		}
	}
}

func TestThePageIsReadWithoutScript(t *testing.T) {
	hub, err := simulated.Shop(2)
	o := open(t, hub, err)
	o.do(Call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	for path, heading := range views() {
		o.do(chromedp.Navigate(o.address+path), chromedp.WaitReady(chromedp.CSS("noscript > meta[http-equiv=refresh]")))
		text, err := chromedp.Run(o.ctx, chromedp.Text(chromedp.CSS("h1")))
		require.NoError(t, err)
		assert.Contains(t, text, heading)
	}
	next, err := simulated.Shop(3)
	require.NoError(t, err)
	hub.Become(next)
	assert.EventuallyWithT(t, func(c *assert.CollectT) {
		text := ""
		err := chromedp.Do(o.ctx, chromedp.Navigate(o.address+"addon?name=metrics"), chromedp.WaitReady(chromedp.CSS("#again")))
		if err == nil {
			text, err = chromedp.Run(o.ctx, chromedp.Text(chromedp.CSS(".waves")))
		}
		assert.NoError(c, err)
		assert.Contains(c, text, "24 complete")
	}, time.Minute, 200*time.Millisecond, "a page that is opened again is new")
	o.quiet()
}
