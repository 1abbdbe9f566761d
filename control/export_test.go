package control

import (
	"github.com/holdfast-storage/holdfast/control/apiserver"
)

// Unlook has a server know nothing of the members of etcd, as when its member has come to lead just now.
func (s *Server) Unlook() { s.held().quorumStatus().quorum.Unlook() }

// MostWatches is how many watches one client may have.
const MostWatches = apiserver.MostWatches
