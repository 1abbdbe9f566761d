// Package torus is the host's side of Torus: the service agents for torusd, and for the etcd that holds
// its metadata. It reports what torusctl says, and carries out the commands of the driver with it.
package torus
