package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/spokelet/spokelet/cmd/kubectl-spokelet/simulated"
	"github.com/spokelet/spokelet/test/browser"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1) //nolint:gocritic // Nothing is left to stop.
	}
}

// largest is how many bytes a picture of the documents may have.
const largest = 150 << 10

// picture is one picture of the page.
type picture struct {
	name, path    string
	width, height int64
	dark, phone   bool
}

// pictures are those of the documents: the four views, one of them dark, and one at the width of a phone.
func pictures() []picture {
	const wide, tall = 1100, 960
	return []picture{
		{name: "dashboard-fleet", width: wide, height: 1130},
		{name: "dashboard-addon", path: "addon?name=metrics", width: wide, height: tall},
		{name: "dashboard-cluster", path: "cluster?name=store-003&addon=logs", width: wide, height: 800},
		{name: "dashboard-problems", path: "problems", width: wide, height: tall},
		{name: "dashboard-dark", path: "addon?name=logs", width: wide, height: tall, dark: true},
		{name: "dashboard-phone", width: 360, height: 780, phone: true},
	}
}

// run takes the pictures.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	to := flags.String("to", ".", "the folder to write to")
	all := flags.Bool("all", false, "take each view also dark and at the width of a phone, in full length")
	if err := flags.Parse(args); err != nil {
		return err
	}
	path := browser.Find()
	if path == "" {
		return fmt.Errorf("there is no Chromium in the path: install one")
	}
	hub, err := simulated.Shop(2)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	address, _, err := browser.Serve(ctx, hub, time.Minute)
	if err != nil {
		return err
	}
	tab, stop := browser.Start(ctx, path)
	defer stop()
	taken := pictures()
	if *all {
		taken = everyView()
	}
	for _, one := range taken {
		raw, err := take(tab, address+one.path, one)
		if err == nil && len(raw) > largest && !*all {
			err = fmt.Errorf("it has more than %d KiB", largest>>10)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(*to, one.name+".png"), raw, 0o644)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		fmt.Printf("%s.png, %d KiB\n", one.name, len(raw)>>10)
	}
	return nil
}

// everyView are pictures of all views in each form, in full length.
func everyView() []picture {
	var all []picture
	for name, path := range map[string]string{
		"fleet": "", "metrics": "addon?name=metrics", "logs": "addon?name=logs",
		"stage": "addon?name=logs&placement=add-ons%2Fstores&stage=waiting",
		"why":   "cluster?name=store-003&addon=logs", "cluster": "cluster?name=store-114", "problems": "problems",
		"code": "problems?code=SPK052", "clusters": "clusters",
	} {
		all = append(all,
			picture{name: name, path: path, width: 1180}, picture{name: name + "-dark", path: path, width: 1180, dark: true},
			picture{name: name + "-phone", path: path, width: 360, phone: true})
	}
	return all
}

// take takes one picture; without a height of the whole page.
func take(ctx context.Context, address string, one picture) ([]byte, error) {
	scheme := "light"
	if one.dark {
		scheme = "dark"
	}
	scale := 1.0
	if one.phone {
		scale = 2
	}
	height := one.height
	if height == 0 {
		height = 900
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme},
	}}
	err := chromedp.Do(ctx, browser.Call(emulation.SetEmulatedMedia, media),
		chromedp.EmulateViewport(one.width, height, chromedp.EmulateScale(scale)),
		chromedp.Navigate(address), chromedp.WaitReady(chromedp.CSS("#main")))
	if err != nil {
		return nil, err
	}
	if one.height == 0 {
		const best = 100
		return chromedp.Run(ctx, chromedp.FullScreenshot(best))
	}
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}
