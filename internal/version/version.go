// Package version says which Holdfast this is.
package version

// Version is the release, set when the binary is linked.
var Version = "dev"
