// The RPCs of Muster's services, a row each. Another one is: its rpc in the
// service's proto, a row here, and what answers it (Coordinator::VisitCalls,
// ParameterShard::VisitCalls). Links and servers carry it as it is.
#ifndef COMMON_RPC_CALL_TABLE_H_
#define COMMON_RPC_CALL_TABLE_H_

#include "common/rpc/method.h"
#include "proto/coordination_service.pb.h"
#include "proto/parameter_service.pb.h"
#include "proto/shared_memory_service.pb.h"

namespace muster {

// clang-format off
inline constexpr Method<HelloRequest, HelloReply> kHelloCall("/muster.ParameterService/Hello");
inline constexpr Method<DefineRequest, DefineReply> kDefineCall("/muster.ParameterService/Define");
inline constexpr Method<SealRequest, SealReply> kSealCall("/muster.ParameterService/Seal");
inline constexpr Method<BeginSnapshotRequest, BeginSnapshotReply> kBeginSnapshotCall("/muster.ParameterService/BeginSnapshot");
inline constexpr Method<EndSnapshotRequest, EndSnapshotReply> kEndSnapshotCall("/muster.ParameterService/EndSnapshot");
inline constexpr Method<StateRequest, ShardState> kStateCall("/muster.ParameterService/State");

// With tensors, which do not pass through a message: ParameterLink has them as
// frames. On a stream they are Exchange's.
inline constexpr Method<LoadPart, LoadReply> kLoadCall("/muster.ParameterService/Load");
inline constexpr Method<PullRequest, PullReply> kPullCall("/muster.ParameterService/Pull");
inline constexpr Method<PushPart, PushReply> kPushCall("/muster.ParameterService/Push");
inline constexpr Method<ReadSnapshotRequest, SnapshotPart> kReadSnapshotCall("/muster.ParameterService/ReadSnapshot");
inline constexpr Method<ExchangeRequest, ExchangeReply> kExchangeCall("/muster.ParameterService/Exchange");

inline constexpr Method<RegisterRequest, RegisterReply> kRegisterCall("/muster.CoordinationService/Register");
inline constexpr Method<WatchRequest, JobState> kWatchCall("/muster.CoordinationService/Watch");
inline constexpr Method<BeginEpochRequest, BeginEpochReply> kBeginEpochCall("/muster.CoordinationService/BeginEpoch");
inline constexpr Method<CommitEpochRequest, CommitEpochReply> kCommitEpochCall("/muster.CoordinationService/CommitEpoch");
inline constexpr Method<StepRequest, StepReply> kStepCall("/muster.CoordinationService/Step");
inline constexpr Method<FinishRequest, FinishReply> kFinishCall("/muster.CoordinationService/Finish");
inline constexpr Method<RequestSaveRequest, RequestSaveReply> kRequestSaveCall("/muster.CoordinationService/RequestSave");
inline constexpr Method<ReportSaveRequest, ReportSaveReply> kReportSaveCall("/muster.CoordinationService/ReportSave");
inline constexpr Method<PauseRoundsRequest, PauseRoundsReply> kPauseRoundsCall("/muster.CoordinationService/PauseRounds");
inline constexpr Method<JobStateRequest, JobState> kGetJobStateCall("/muster.CoordinationService/GetJobState");

inline constexpr Method<SharedMemoryOfferRequest, SharedMemoryOffer> kOfferCall("/muster.SharedMemoryService/Offer");
// clang-format on

}  // namespace muster

#endif  // COMMON_RPC_CALL_TABLE_H_
