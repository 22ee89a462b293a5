// Package work_test runs the work agent against a real API server, which is hub and spoke at once: each test has a
// cluster name, and so a hub namespace and a hub identity, of its own.
package work_test
