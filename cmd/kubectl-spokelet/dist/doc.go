// Command dist builds the plugin for five platforms and packs each with the license into an archive, writes their
// checksums, and writes the manifest with which krew installs them. The same tree gives the same bytes. "make
// plugin-dist" runs it; docs/releasing.md says where the files go.
package main
