#pragma once

#include <array>
#include <filesystem>
#include <string_view>

#include "core/kinds.h"
#include "train/config/config.h"
#include "train/storage/checkpoint.h"
#include "train/storage/safetensors.h"

/// Models as other programs read and write them.
namespace qkv {

/// How the parameters of an exported model are named.
enum class ExportNames { qkv, torch };
inline constexpr auto export_names = std::to_array<Kind<ExportNames>>({
    {ExportNames::qkv, "qkv", "parameter paths"},
    {ExportNames::torch, "torch", "as in torch.nn.TransformerEncoder and TransformerDecoder"},
});
static_assert(lists_every_kind(export_names));

/// The parameters of a checkpoint that was read from `file`, for a file in `folder`. The metadata
/// hold all else that using the model needs:
///
///     format           "pt": shapes and layouts are PyTorch's
///     qkv.names        "qkv" or "torch"
///     qkv.config       TOML; its relative paths lead from `folder` or one above it
///     qkv.step         updates done
///     qkv.version      of the program
///     qkv.vocabulary   {"tokens": [...], "labels": [...]} in JSON, as Checkpoint::vocabulary
///
/// Throws CheckpointError when a text is not UTF-8, UserError as `to_torch_names` does.
Safetensors exported(const Checkpoint& checkpoint, const std::filesystem::path& file,
                     const std::filesystem::path& folder, ExportNames names = ExportNames::qkv);

/// The tensors, with a config whose paths stand as the file is to have them.
Safetensors exported(const Checkpoint& checkpoint, const std::filesystem::path& file,
                     const Config& config, ExportNames names = ExportNames::qkv);

/// Whether a file begins as the bytes of what `exported` gave.
bool begins_as_export(std::string_view beginning);

/// Makes an imported model, which was read from `file`, one of a run at step 0. Throws
/// CheckpointError when the parameters are not those of the config's model or are not finite.
void begin_run(Checkpoint& checkpoint, const std::filesystem::path& file);

/// The checkpoint of a run at step 0 that starts from the parameters in `contents`, which were read
/// from `file`; as in there, relative paths lead from the file's folder. Throws UserError when the
/// metadata lack what using a model needs, CheckpointError when the parameters are not those of the
/// config's model or are not finite.
Checkpoint imported(const Safetensors& contents, const std::filesystem::path& file);

}  // namespace qkv
