// Package spoke sends requests about one object at a time to the API server of the managed cluster, always as the field
// manager of the work agent. It decides nothing. Its Room bounds how much of objects is in memory at the same time.
package spoke
