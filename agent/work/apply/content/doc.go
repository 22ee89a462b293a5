// Package content compares the content of objects: everything but their identity, metadata and status.
package content
