// Package browser plays the page of "kubectl spokelet dashboard" in a headless Chromium. It is a module of its own, so
// that the plugin has no dependency that drives a browser. Without a browser its tests are skipped, and say so.
package browser
