// Package torus is the host's side of Torus: the service agents for torusd, and for the etcd that holds its metadata.
package torus
