// Command vuln checks what the project ships for known vulnerabilities, with govulncheck and Go's database of them. It
// fails only where a program can reach the vulnerable code; other findings in the module graph are printed.
//
// The exit code is 0 when nothing was found, 3 when something was, 4 when the database cannot be reached, so that
// nothing was checked, and 1 when the check itself failed. docs/releasing.md describes what to do without the database.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/vuln/scan"
)

// Exit codes beside 0. That of a finding is govulncheck's own.
const (
	exitFailed      = 1
	exitUnreachable = 4
)

// publicDatabase is Go's own database.
const publicDatabase = "https://vuln.go.dev"

// index is the file that every database has, below its address.
const index = "index/modules.json"

// patience is how long the database may take to answer.
const patience = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	database := os.Getenv("GOVULNDB")
	if database == "" {
		database = publicDatabase
	}
	err := run(ctx, os.Args[1:], database, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "vuln:", err)
		os.Exit(code(err))
	}
}

// code returns the exit code for an error.
func code(err error) int {
	var coded interface{ ExitCode() int }
	var away *unreachableError
	switch {
	case errors.As(err, &away):
		return exitUnreachable
	case errors.As(err, &coded):
		return coded.ExitCode()
	default:
		return exitFailed
	}
}

// run checks packages of a module.
func run(ctx context.Context, args []string, database string, out io.Writer) error {
	flags := pflag.NewFlagSet("vuln", pflag.ContinueOnError)
	folder := flags.String("source", ".", "folder of the Go module")
	flags.StringVar(&database, "db", database, "address of the database, https or file; by default GOVULNDB, or Go's")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("name the packages to check, for example ./cmd/spokelet")
	}
	if err := reach(ctx, database); err != nil {
		return &unreachableError{database: database, cause: err}
	}
	command := scan.Command(ctx, append([]string{"-C", *folder, "-db", database}, flags.Args()...)...)
	command.Stdout, command.Stderr = out, out
	if err := command.Start(); err != nil {
		return fmt.Errorf("starting govulncheck: %w", err)
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("govulncheck: %w", err)
	}
	return nil
}

// unreachableError is why nothing was checked.
type unreachableError struct {
	database string
	cause    error
}

// Error returns the cause and what to do.
func (e *unreachableError) Error() string {
	return fmt.Sprintf("nothing was checked, because the database of vulnerabilities %s cannot be reached: %v. "+
		"Run it where there is a network, or with GOVULNDB=file:///folder of a copy (docs/releasing.md)", e.database, e.cause)
}

// Unwrap returns the cause.
func (e *unreachableError) Unwrap() error { return e.cause }

// reach reports why a database cannot be read; nil when it can.
func reach(ctx context.Context, database string) error {
	address, err := url.Parse(database)
	if err != nil {
		return fmt.Errorf("reading the address: %w", err)
	}
	if address.Scheme == "file" {
		_, err := os.Stat(filepath.Join(filepath.FromSlash(address.Path), filepath.FromSlash(index)))
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	asked := strings.TrimRight(database, "/") + "/" + index + ".gz"
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, asked, nil)
	if err != nil {
		return fmt.Errorf("asking for the index: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", response.Status)
	}
	return nil
}
