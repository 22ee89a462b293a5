// Package dashboard has the Grafana dashboards of Spokelet as data, and writes them as the files of
// manifests/monitoring/dashboards, which people import. It needs neither Grafana nor Prometheus.
//
// A board (board.go) is a table: rows, panels, queries. The four boards are in fleet.go, addon.go, cluster.go and
// hubmanager.go. build.go makes Grafana's Document (grafana.go) of a board: it lays panels out from left to right, and
// adds what all panels have. kinds.go has what differs between kinds of panels, and colors.go the colours, which people
// who confuse red and green can tell apart. Series and cells with a code of kubectl spokelet get its words, and series
// get a link to what to do (codes.go).
//
// In the expression of a query, "@" stands for the labels that the variables of its board select.
//
// The module test/monitoring checks the files with rules of its own, asks each query of a Prometheus that scrapes our
// programs, and draws the pictures of the documentation. "go run ./manifests/gen/dashboards" writes the files.
package dashboard
