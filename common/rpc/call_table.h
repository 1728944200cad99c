// The RPCs of Muster's services, a row each. Another one is: its rpc in the
// service's proto, a row here with who may make it, and what answers it
// (Coordinator::VisitCalls, ParameterShard::VisitCalls). Links and servers
// carry it as it is.
#ifndef COMMON_RPC_CALL_TABLE_H_
#define COMMON_RPC_CALL_TABLE_H_

#include "common/rpc/method.h"
#include "proto/coordination_service.pb.h"
#include "proto/parameter_service.pb.h"
#include "proto/shared_memory_service.pb.h"
#include "proto/tcp_link_service.pb.h"

namespace muster {

// Who may make a call, where callers have certificates
// (ps_server/caller/README.md has the table). Each makes it as himself: the
// sender of its request is the task of its certificate. Some fields of a
// request are the chief's alone (FinishRequest.stop_job): its handler looks at
// these.
inline constexpr RoleSet kByChief = {Role::kChief};
inline constexpr RoleSet kByTraining = {Role::kChief, Role::kWorker};
inline constexpr RoleSet kByPs = {Role::kPs};
inline constexpr RoleSet kByTasks = {Role::kChief, Role::kWorker, Role::kPs,
                                     Role::kEvaluator};
inline constexpr RoleSet kByAdmin = {Role::kAdmin};
inline constexpr RoleSet kByViewers = {Role::kViewer, Role::kAdmin};
// Of a ps task's clock; CheckMayProfile says who may do more.
inline constexpr RoleSet kByClocks = {Role::kChief, Role::kWorker,
                                      Role::kViewer, Role::kAdmin};
inline constexpr RoleSet kByAll = {Role::kChief,  Role::kWorker,
                                   Role::kPs,     Role::kEvaluator,
                                   Role::kViewer, Role::kAdmin};

// clang-format off
inline constexpr Method<HelloRequest, HelloReply> kHelloCall("/muster.ParameterService/Hello", kByTraining);
inline constexpr Method<DefineRequest, DefineReply> kDefineCall("/muster.ParameterService/Define", kByChief);
inline constexpr Method<SealRequest, SealReply> kSealCall("/muster.ParameterService/Seal", kByChief);
inline constexpr Method<BeginSnapshotRequest, BeginSnapshotReply> kBeginSnapshotCall("/muster.ParameterService/BeginSnapshot", kByChief);
inline constexpr Method<EndSnapshotRequest, EndSnapshotReply> kEndSnapshotCall("/muster.ParameterService/EndSnapshot", kByChief);
inline constexpr Method<StateRequest, ShardState> kStateCall("/muster.ParameterService/State", kByAll);
inline constexpr Method<ListNamespacesRequest, ListNamespacesReply> kListNamespacesCall("/muster.ParameterService/ListNamespaces", kByAll);
inline constexpr Method<EndNamespaceRequest, EndNamespaceReply> kEndNamespaceCall("/muster.ParameterService/EndNamespace", kByAdmin);
inline constexpr Method<ProfileRequest, ProfileReply> kProfileCall("/muster.ParameterService/Profile", kByClocks);

// With tensors, which do not pass through a message: ParameterLink has them as
// frames.
inline constexpr Method<LoadPart, LoadReply> kLoadCall("/muster.ParameterService/Load", kByChief);
inline constexpr Method<PullRequest, PullReply> kPullCall("/muster.ParameterService/Pull", kByTraining);
inline constexpr Method<PushPart, PushReply> kPushCall("/muster.ParameterService/Push", kByTraining);
inline constexpr Method<PullRowsRequest, PullRowsReply> kPullRowsCall("/muster.ParameterService/PullRows", kByTraining);
inline constexpr Method<ReadSnapshotRequest, SnapshotPart> kReadSnapshotCall("/muster.ParameterService/ReadSnapshot", kByChief);

inline constexpr Method<AssignTaskRequest, AssignTaskReply> kAssignTaskCall("/muster.CoordinationService/AssignTask", kByTraining);
inline constexpr Method<RegisterRequest, RegisterReply> kRegisterCall("/muster.CoordinationService/Register", kByTraining);
inline constexpr Method<WatchRequest, JobState> kWatchCall("/muster.CoordinationService/Watch", kByTasks);
inline constexpr Method<BeginEpochRequest, BeginEpochReply> kBeginEpochCall("/muster.CoordinationService/BeginEpoch", kByChief);
inline constexpr Method<CommitEpochRequest, CommitEpochReply> kCommitEpochCall("/muster.CoordinationService/CommitEpoch", kByChief);
inline constexpr Method<StepRequest, StepReply> kStepCall("/muster.CoordinationService/Step", kByTraining);
inline constexpr Method<FinishRequest, FinishReply> kFinishCall("/muster.CoordinationService/Finish", kByTraining);
inline constexpr Method<RequestSaveRequest, RequestSaveReply> kRequestSaveCall("/muster.CoordinationService/RequestSave", kByPs);
inline constexpr Method<ReportSaveRequest, ReportSaveReply> kReportSaveCall("/muster.CoordinationService/ReportSave", kByChief);
inline constexpr Method<PauseRoundsRequest, PauseRoundsReply> kPauseRoundsCall("/muster.CoordinationService/PauseRounds", kByChief);
inline constexpr Method<BeginCutRequest, BeginCutReply> kBeginCutCall("/muster.CoordinationService/BeginCut", kByChief);
inline constexpr Method<ConfirmCutRequest, ConfirmCutReply> kConfirmCutCall("/muster.CoordinationService/ConfirmCut", kByChief);
inline constexpr Method<JobStateRequest, JobState> kGetJobStateCall("/muster.CoordinationService/GetJobState", kByAll);
inline constexpr Method<SteerRequest, SteerReply> kSteerCall("/muster.CoordinationService/Steer", kByAdmin);
inline constexpr Method<BeginProfileRequest, BeginProfileReply> kBeginProfileCall("/muster.CoordinationService/BeginProfile", kByViewers);
inline constexpr Method<AddProfileRequest, AddProfileReply> kAddProfileCall("/muster.CoordinationService/AddProfile", kByTraining);
inline constexpr Method<GetProfileRequest, GetProfileReply> kGetProfileCall("/muster.CoordinationService/GetProfile", kByViewers);
inline constexpr Method<EndNamespaceRequest, EndNamespaceReply> kEndJobCall("/muster.CoordinationService/EndNamespace", kByAdmin);

inline constexpr Method<SharedMemoryOfferRequest, SharedMemoryOffer> kOfferCall("/muster.SharedMemoryService/Offer", kByTraining);
inline constexpr Method<TcpOfferRequest, TcpOffer> kTcpOfferCall("/muster.TcpLinkService/Offer", kByTraining);
// clang-format on

// All of them.
inline constexpr AnyMethod kCallTable[] = {
    kHelloCall,       kDefineCall,     kSealCall,           kBeginSnapshotCall,
    kEndSnapshotCall, kStateCall,      kListNamespacesCall, kEndNamespaceCall,
    kLoadCall,        kPullCall,       kPushCall,           kReadSnapshotCall,
    kRegisterCall,    kWatchCall,      kBeginEpochCall,     kCommitEpochCall,
    kStepCall,        kFinishCall,     kRequestSaveCall,    kReportSaveCall,
    kPauseRoundsCall, kBeginCutCall,   kConfirmCutCall,     kGetJobStateCall,
    kEndJobCall,      kAssignTaskCall, kOfferCall,          kTcpOfferCall,
    kPullRowsCall,    kSteerCall,      kProfileCall,        kBeginProfileCall,
    kAddProfileCall,  kGetProfileCall};

}  // namespace muster

#endif  // COMMON_RPC_CALL_TABLE_H_
