// Command sandbox starts control planes on loopback and keeps them up until Ctrl-C; --once ends at once.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spokelet/spokelet/test/sandbox"
)

func main() {
	clusters := flag.String("clusters", "hub,cluster1", "names of the control planes, separated by commas")
	dir := flag.String("dir", "", "directory for the kubeconfigs; empty means a temporary one")
	once := flag.Bool("once", false, "end as soon as all are up")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, strings.Split(*clusters, ","), *dir, *once)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "sandbox: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string, dir string, once bool) error {
	started := time.Now()
	if dir == "" {
		made, err := os.MkdirTemp("", "spokelet-kubeconfigs-")
		if err != nil {
			return err
		}
		defer func() {
			if err := os.RemoveAll(made); err != nil {
				fmt.Fprintf(os.Stderr, "sandbox: removing the kubeconfigs: %v\n", err)
			}
		}()
		dir = made
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	planes := make([]*sandbox.ControlPlane, len(names))
	defer func() {
		for _, plane := range planes {
			if plane != nil {
				plane.Stop()
			}
		}
	}()
	var group errgroup.Group
	for i, name := range names {
		group.Go(func() (err error) {
			planes[i], err = sandbox.Start(ctx, sandbox.Options{Name: name, Log: os.Stdout})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, plane := range planes {
		kubeconfig, err := plane.Kubeconfig(plane.Admin())
		if err != nil {
			return err
		}
		path := filepath.Join(dir, plane.Name+".kubeconfig")
		if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
			return err
		}
		fmt.Printf("export KUBECONFIG=%s\n", path)
	}
	fmt.Printf("%d control planes are up after %s\n", len(planes), time.Since(started).Round(10*time.Millisecond))
	if once {
		return nil
	}
	fmt.Println("Ctrl-C ends them")
	<-ctx.Done()
	return nil
}
